/**
 * The part of the README that has figures: between two markers, made of docs/results.json like the results page.
 *
 * Invariant: what stands outside of the markers is never touched.
 */

import { verdictOf } from '../core/compare/rounds.ts';
import { type Comparison, comparisonsOf, ratioText, slowerOf } from '../core/comparison.ts';
import { HEADLINES } from './charts.ts';
import { commitsOf, type Results } from './results.ts';
import { groupName, groupsOf, type ResultRow } from './row.ts';

const BEGIN = '<!-- results:begin -->';
const END = '<!-- results:end -->';

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
    `![Varve beside the fastest peer, in times its rate](docs/results/${HEADLINES})`,
    `${machine.processor}, ${machine.cores} cores, ${browser}, ${day}, commit ${commits.join(' and ')}.\n` +
      'Same durability, every answer verified, medians of interleaved rounds.',
  ].join('\n\n');
}

function slowerText(comparisons: readonly Comparison<ResultRow>[]): string {
  const slower = slowerOf(comparisons).filter((one) => verdictOf(one) === 'slower');
  const all = `${comparisons.length} comparisons with a peer`;
  const [worst] = slower;
  if (worst === undefined) return `Varve is slower in none of ${all}.`;
  const { varve, peer, ratio } = worst;
  return [
    `**Varve is slower in ${slower.length} of ${all}.** The largest gap is ${groupName(varve)} of \`${varve.engine}\`:`,
    `${ratioText(ratio)} the rate of ${peer.engine}. See [all of them](docs/results.md) and [the reasons](docs/slower.md).`,
  ].join('\n');
}
