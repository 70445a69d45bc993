/**
 * docs/results.md: where Varve is slower first, then missed targets, Varve beside the best peers, and its rows suite by suite.
 * The same in short for the README. Nothing is rounded in Varve's favour.
 */

import { bestPeers, type Comparison, comparisonsOf, countText, ratioText, slowerOf } from '../core/comparison.ts';
import { bytes } from '../core/figures.ts';
import { engineLine } from '../core/result.ts';
import { caseName, casesOf, groupsBy } from '../core/row.ts';
import { comparisonTable, markdownOf, markdownTable, storageTable, suiteTable } from '../core/tables.ts';
import { TARGET_COLUMNS } from '../core/targets.ts';
import { barOf, chartOf } from './chart.ts';
import type { PlanNote, Results } from './results.ts';

/** In docs/results. */
export const CHART = 'headlines.svg';

/** Columns of the rows of Varve. */
const SHOWN = 'engine,where,part,durability,a second,spread,p50,p95,p99,max,errors,verified,note'.split(',');

const BARS: readonly (readonly [suite: string, access: string, name: string])[] = [
  ['read-rand-mem', 'worker', 'get, in memory'],
  ['read-rand-disk', 'worker', 'get, from tables'],
  ['write-rand', 'worker', 'set'],
  ['write-batch', 'worker', 'batches of 100, entries'],
  ['range-100', 'worker', 'ranges of 100'],
  ['mixed-70', 'worker', '70% gets, 30% sets'],
  ['strict-set', 'worker', 'set, flushed to the disk'],
  ['open', 'worker', 'open and first get'],
  ['read-rand-mem', 'page', 'get from the page, awaited'],
  ['write-rand', 'page', 'set from the page, awaited'],
  ['read-rand-mem', 'inflight', 'get from the page, 100 in flight'],
  ['write-rand', 'inflight', 'set from the page, 100 in flight'],
];

/** Undefined if there is nothing to draw. */
export function headlinesOf(comparisons: readonly Comparison[]): string | undefined {
  const best = bestPeers(comparisons).filter(
    ({ varve }) => varve.phase === undefined && !varve.engine.includes('indexeddb'),
  );
  const bars = BARS.flatMap(([suite, access, name]) =>
    best
      .filter(({ varve }) => varve.suite === suite && varve.access === access)
      .map((one) => barOf(one, one.varve.engine === 'varve-sync-each' ? `${name}, committed one by one` : name)),
  );
  if (bars.length === 0) return undefined;
  return chartOf('Varve beside the fastest peer, in times its rate. Left of the line Varve is slower', bars);
}

export function comparisonsIn({ rows }: Pick<Results, 'rows'>): Comparison[] {
  return comparisonsOf(casesOf(rows));
}

/** The whole page. */
export function pageText(results: Results): string {
  const comparisons = comparisonsIn(results);
  const unverified = results.rows
    .filter(({ verified }) => !verified)
    .map((row) => `${caseName(row)} ${row.engine}: not verified`);
  const problems = [...results.problems, ...unverified];
  const own = results.rows.filter(({ role }) => role === 'varve');
  const missed = results.targets.filter(({ reached }) => reached === false);
  const judged = results.targets.filter(({ reached }) => typeof reached === 'boolean').length;
  const slower = slowerOf(comparisons);
  return `${[
    '# Results',
    'Made by `npm run bench -- results`; do not edit it. All rows of all engines are in [results.json.gz](results.json.gz). ' +
      '[bench/README.md](../bench/README.md) says what is measured and how, [benchmarks.md](benchmarks.md) has native and older runs.',
    provenance(results),
    ...(problems.length === 0 ? [] : ['## Problems', problems.map((text) => `- ${text}`).join('\n')]),
    '## Where Varve is slower than a peer',
    `Varve is **${countText(comparisons)}**, with the whole 95% interval. The worst come first; [slower.md](slower.md) says why.`,
    ...(slower.length === 0 ? [] : [markdownTable(comparisonTable('', slower))]),
    `![Varve beside the fastest peer, in times its rate](results/${CHART})`,
    '## Targets that were missed',
    `${missed.length} of ${judged}.`,
    ...(missed.length === 0 ? [] : [markdownTable({ columns: TARGET_COLUMNS, lines: missed })]),
    '## Beside the quickest peer that is like it',
    '"Varve is" is the geometric mean of the ratios of the rounds; rates are medians.',
    markdownTable(comparisonTable('', bestPeers(comparisons))),
    '## Every row of Varve',
    'Percentiles are of a call, of the mean of a group of calls too short for the timer, or of 100 calls in flight.',
    ...groupsBy(own, ({ suite }) => suite).map((rows) => markdownOf(suiteTable(rows[0]?.suite ?? '', rows, SHOWN))),
    ...(results.storage.length === 0 ? [] : [markdownOf(storageTable(results.storage))]),
    '## What was compared',
    results.engines.map((engine) => `- ${engineLine(engine)}`).join('\n'),
  ].join('\n\n')}\n`;
}

function provenance(results: Results): string {
  const { machine, load, browser, source, plans, versions, sizes } = results;
  const tree = source.clean ? '' : ', with changes that were not committed';
  const named = Object.entries(versions).map(([name, version]) => `; ${name} ${version}`);
  return [
    `- Machine: ${machine.processor}, ${machine.cores} cores, ${bytes(machine.memoryBytes)} of memory, ${machine.system}; load average ${load} at the end of a run, the run included`,
    `- Browser: ${browser}, headless, persistent profile; Node ${machine.node}${named.join('')}`,
    `- Date: ${daysOf(results)}. Commit: ${commitOf(results)}${tree}`,
    `- Runs: ${plansText(plans)}`,
    `- Sizes after gzip: engine ${bytes(sizes.wasm)}, \`varve\` ${bytes(sizes.client)}, \`varve/synchronous\` ${bytes(sizes.sync)}`,
  ].join('\n');
}

function commitOf({ source: { commit = 'not known' } }: Results): string {
  return `\`${commit}\``;
}

function daysOf({ dates }: Results): string {
  return [...new Set(dates.map((date) => date.slice(0, 10)))].join(', ');
}

/** The options of the runs, each with its suites. */
function plansText(plans: readonly PlanNote[]): string {
  const texts = plans.map(({ mode, rounds, seed, scale, custom, suites }) => {
    const round = custom.round_ms === undefined ? '' : ` of at most ${custom.round_ms} ms`;
    const options = `${mode}, ${rounds} interleaved rounds${round}, seed ${seed}${scale === 1 ? '' : `, scale ${scale}`}`;
    return plans.length === 1 ? options : `${options} (${suites.join(', ')})`;
  });
  return texts.join('; ');
}

/** The figures of the README. */
export function readmeText(results: Results | undefined): string {
  if (results === undefined) {
    return 'No run is kept here yet: `npm run bench -- results` makes one, and writes its figures here.';
  }
  const { machine, browser } = results;
  const comparisons = comparisonsIn(results);
  const [worst] = slowerOf(comparisons);
  const gap =
    worst === undefined
      ? ''
      : ` The largest gap is ${caseName(worst.varve)} of \`${worst.varve.engine}\`:\n` +
        `${ratioText(worst.ratio)} the rate of ${worst.peer.engine}. See [all of them](docs/results.md) and [the reasons](docs/slower.md).`;
  return [
    `**Varve is ${countText(comparisons)}.**${gap}`,
    `![Varve beside the fastest peer, in times its rate](docs/results/${CHART})`,
    `${machine.processor}, ${machine.cores} cores, ${browser}, ${daysOf(results).slice(0, 10)}, commit ${commitOf(results)}.\n` +
      'Same durability, every answer verified, medians of interleaved rounds.',
  ].join('\n\n');
}
