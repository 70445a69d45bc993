/**
 * The part of the README that tells figures: between two markers, made of docs/results.json like the results page.
 *
 * Invariant: what stands outside of the markers is never touched.
 */

import { verdictOf } from '../compare/rounds.ts';
import { bestPeers, type Comparison, comparisonsOf, ratioText, slowerOf } from '../comparison.ts';
import { rate } from '../figures.ts';
import { table } from '../table.ts';
import { commitsOf, type Results } from './results.ts';
import { groupName, groupsOf, type ResultRow } from './row.ts';

const BEGIN = '<!-- results:begin -->';
const END = '<!-- results:end -->';

/** Rows of the README's table, in its order. */
const HEADLINES: readonly (readonly [suite: string, place: string, title: string])[] = [
  ['read-rand-mem', 'in the worker', 'get, in memory'],
  ['read-rand-disk', 'in the worker', 'get, from tables'],
  ['write-rand', 'in the worker', 'set'],
  ['write-batch', 'in the worker', 'batches of 100, entries'],
  ['range-100', 'in the worker', 'ranges of 100'],
  ['mixed-70', 'in the worker', '70% gets, 30% sets'],
  ['strict-set', 'in the worker', 'set, flushed to the disk'],
  ['open', 'in the worker', 'open and first get'],
  ['read-rand-mem', 'page, awaited', 'get from the page, awaited'],
  ['write-rand', 'page, awaited', 'set from the page, awaited'],
  ['read-rand-mem', 'page, in flight', 'get from the page, 100 in flight'],
  ['write-rand', 'page, in flight', 'set from the page, 100 in flight'],
];

/** How many of the slower rows are named. */
const NAMED_MAX = 5;

/** The README with the part between its markers made anew. Throws when the markers are not there. */
export function readmeWith(readme: string, results: Results | undefined): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error(`README.md has no ${BEGIN} and ${END}: its figures stand between them.`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${sectionText(results)}\n${readme.slice(end)}`;
}

function sectionText(results: Results | undefined): string {
  if (results === undefined)
    return 'No run is kept here yet: `npm run bench -- results` makes one, and writes its figures here.';
  const { machine, browser, dates } = results;
  const comparisons = comparisonsOf(groupsOf(results.rows));
  const day = dates[0]?.slice(0, 10) ?? '';
  const commits = [...commitsOf(results).keys()].map((commit) => `\`${commit}\``);
  return [
    slowerText(comparisons),
    table(['a second', 'Varve', 'best peer', '', 'Varve is'], headlines(comparisons), [0, 2]),
    `${machine.processor}, ${machine.cores} cores, ${browser}, ${day}, commit ${commits.join(' and ')}; same durability, every answer verified, medians of interleaved rounds. ` +
      '[docs/results.md](docs/results.md) has all of them.',
  ].join('\n\n');
}

function slowerText(comparisons: readonly Comparison<ResultRow>[]): string {
  const slower = slowerOf(comparisons).filter((one) => verdictOf(one) === 'slower');
  const all = `${comparisons.length} comparisons with a peer`;
  if (slower.length === 0) return `Varve is slower in none of ${all}.`;
  // Each row of Varve once, beside the peer that it is the farthest behind.
  const rowOf = ({ varve }: Comparison<ResultRow>): string => `${groupName(varve)}, \`${varve.engine}\``;
  const worst = slower.filter((one, at) => slower.findIndex((other) => rowOf(other) === rowOf(one)) === at);
  const named = worst
    .slice(0, NAMED_MAX)
    .map((one) => `${rowOf(one)}: ${ratioText(one.ratio)} beside ${one.peer.engine}`);
  const more = slower.length > NAMED_MAX ? `, and [${slower.length - NAMED_MAX} more](docs/results.md)` : '';
  return `**Varve is slower** in ${slower.length} of ${all}: ${named.join('; ')}${more}.`;
}

function headlines(comparisons: readonly Comparison<ResultRow>[]): string[][] {
  const best = bestPeers(comparisons);
  return HEADLINES.flatMap(([suite, place, title]) => {
    return best
      .filter(({ varve }) => varve.suite === suite && varve.place === place && varve.part === undefined)
      .filter(({ varve }) => !varve.engine.includes('indexeddb'))
      .map(({ varve, peer, ratio }) => {
        const how = varve.engine === 'varve-sync-each' ? ', committed one by one' : '';
        return [title + how, rate(varve.opsPerSecond), peer.engine, rate(peer.opsPerSecond), ratioText(ratio)];
      });
  });
}
