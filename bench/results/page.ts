/**
 * docs/results.md: where Varve is slower first, then missed targets, and a table for each suite, with Varve and the best peers.
 * The same in short for the README. Nothing is rounded in Varve's favour.
 */

import { bestPeers, type Comparison, comparisonsOf, countText, ratioText, slowerOf } from '../core/comparison.ts';
import { everydayOf, type Published, tasksIn } from '../core/everyday.ts';
import { bytes } from '../core/figures.ts';
import { engineLine } from '../core/result.ts';
import { caseName, casesOf, groupsBy, type Row } from '../core/row.ts';
import { comparisonTable, markdownOf, markdownTable, storageTable, suiteTable } from '../core/tables.ts';
import { judge, TARGET_COLUMNS } from '../core/targets.ts';
import type { Source } from '../targets/command.ts';
import '../suites/browser.ts';
import { barOf, chartOf } from './chart.ts';
import type { Results, RunNote } from './results.ts';

export const CHART = 'headlines.svg';
const SLOWEST = 5;

const OWN = 'engine,where,part,durability,a second,MB/s,p50,p95,p99,max,reads p50/p99,writes p50/p99,hits,errors';
const SHOWN = `${OWN},best peer,its rate,Varve is,95% interval,rates,p99s,disk,memory,note`.split(',');

/** Of a task that several comparisons could show, the one with the peer that is hardest to beat. */
export function headlinesOf(comparisons: readonly Comparison[]): string {
  const bars = tasksIn(bestPeers(comparisons)).flatMap(({ name, found }) => found.map((one) => barOf(one, name)));
  return chartOf('Varve beside the fastest peer, in times its rate. Left of the line Varve is slower', bars);
}

export function publishedOf(results: Results): Published {
  const comparisons = comparisonsIn(results);
  const worst = groupsBy(slowerOf(bestPeers(comparisons)), ({ varve }) => varve.suite).flatMap(
    ([first]) => first ?? [],
  );
  return {
    where: whereText(results),
    groups: everydayOf(comparisons),
    count: countText(comparisons),
    slowest: comparisonTable('Where Varve is slower', worst.slice(0, SLOWEST)),
  };
}

function whereText({ machine, browser, runs }: Results): string {
  const days = runs.map(({ date }) => date.slice(0, 10)).sort();
  const span = new Set([days[0], days.at(-1)]);
  return `${machine.processor}, ${machine.cores} cores, ${browser}, ${[...span].join(' to ')}.`;
}

export function comparisonsIn({ rows }: Pick<Results, 'rows'>): Comparison[] {
  return comparisonsOf(casesOf(rows));
}

export function pageText(results: Results): string {
  const comparisons = comparisonsIn(results);
  const unverified = results.rows
    .filter(({ verified }) => !verified)
    .map((row) => `${caseName(row)} ${row.engine}: not verified`);
  const problems = [...results.problems, ...unverified];
  const judged = judge(results.rows).filter(({ reached }) => typeof reached === 'boolean');
  const missed = judged.filter(({ reached }) => reached === false);
  const slower = slowerOf(bestPeers(comparisons));
  return `${[
    '# Results',
    'Made by `npm run bench -- results`; do not edit it. All rows of all engines are in [results.json.gz](results.json.gz). ' +
      '[bench/README.md](../bench/README.md) says what is measured and how, [benchmarks.md](benchmarks.md) has native and older runs.',
    provenance(results),
    ...(problems.length === 0 ? [] : ['## Problems', problems.map((text) => `- ${text}`).join('\n')]),
    '## Where Varve is slower than a peer',
    `Varve is **${countText(comparisons)}**, with the whole 95% interval or in the one round of a life. These are the cases, each beside the peer that is quickest there, the worst first. [slower.md](slower.md) says why.`,
    ...(slower.length === 0 ? [] : [markdownTable(comparisonTable('', slower))]),
    `![Varve beside the fastest peer, in times its rate](results/${CHART})`,
    '## Targets that were missed',
    `${missed.length} of ${judged.length}.`,
    ...(missed.length === 0 ? [] : [markdownTable({ columns: TARGET_COLUMNS, lines: missed })]),
    '## Suite by suite',
    'Rates are medians of rounds, "Varve is" the geometric mean of their ratios. Percentiles are of a call, of the mean of a group of calls too short for the timer, or of 100 calls in flight. A cell is empty where there were too few calls for the percentile. Bars show the windows of a life, first to last, from zero to the largest.',
    ...groupsBy(results.rows, ({ suite }) => suite).map((rows) =>
      markdownOf(suiteTable(rows[0]?.suite ?? '', rows, SHOWN)),
    ),
    ...(results.storage.length === 0 ? [] : [markdownOf(storageTable(results.storage))]),
    '## What was compared',
    results.engines.map((engine) => `- ${engineLine(engine)}`).join('\n'),
  ].join('\n\n')}\n`;
}

function provenance(results: Results): string {
  const { machine, browser, versions, sizes } = results;
  const rowsOf = (at: number): Row[] => results.rows.filter(({ run }) => run === at);
  const named = Object.entries(versions).map(([name, version]) => `; ${name} ${version}`);
  return [
    `- Machine: ${machine.processor}, ${machine.cores} cores, ${bytes(machine.memoryBytes)} of memory, ${machine.system}`,
    `- Browser: ${browser}, headless, persistent profile; Node ${machine.node}${named.join('')}`,
    `- Sizes after gzip: engine ${bytes(sizes.wasm)}, \`varve\` ${bytes(sizes.client)}, \`varve/synchronous\` ${bytes(sizes.sync)}`,
    '',
    markdownTable({
      columns: ['day', 'commit', 'load', 'runs', 'suites'],
      lines: results.runs.map((run, at) => ({ cells: runCells(run, rowsOf(at)) })),
    }),
    '',
    'The load is the average number of programs that wanted to run in the last minute, the run included.',
  ].join('\n');
}

function runCells({ date, load, source, plan }: RunNote, rows: readonly Row[]): string[] {
  const suites = [...new Set(rows.map(({ suite }) => suite))].join(', ');
  return [date.slice(0, 10), commitOf(source), String(load), plan === undefined ? '' : planText(plan), suites];
}

function commitOf({ commit = 'not known', clean }: Source): string {
  return `\`${commit}\`${clean ? '' : ', with changes that were not committed'}`;
}

function planText({ mode, rounds, seed, scale, custom }: NonNullable<RunNote['plan']>): string {
  const round = custom.round_ms === undefined ? '' : ` of at most ${custom.round_ms} ms`;
  return `${mode}, ${rounds} interleaved rounds${round}, seed ${seed}${scale === 1 ? '' : `, scale ${scale}`}`;
}

export function readmeText(results: Results): string {
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
    `${whereText(results)}\nSame durability, every answer verified, medians of interleaved rounds.`,
  ].join('\n\n');
}
