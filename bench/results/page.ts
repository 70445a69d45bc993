/**
 * docs/results.md: what is slower first, then missed targets, the best peer of every suite, charts, and all tables.
 *
 * Invariant: every figure comes from docs/results.json; nothing is rounded in Varve's favour, and nothing left out.
 */

import { verdictOf } from '../core/compare/rounds.ts';
import {
  besideText,
  bestPeers,
  type Comparison,
  comparisonsOf,
  isSlower,
  ratioText,
  slowerOf,
  varveBeside,
} from '../core/comparison.ts';
import { bytes, duration, percent, rate } from '../core/figures.ts';
import { TARGET_COLUMNS } from '../core/report.ts';
import { spreadOf } from '../core/rows.ts';
import { filledTable, table } from '../core/table.ts';
import { failoverTables } from '../suites/tabs/report.ts';
import type { Chart } from './charts.ts';
import { commitsOf, type PlanNote, type Results } from './results.ts';
import { groupName, groupsOf, type ResultRow } from './row.ts';

/** The whole page. `charts` lie in the folder results beside it. */
export function pageText(results: Results, charts: readonly Chart[]): string {
  const comparisons = comparisonsOf(groupsOf(results.rows));
  return `${[
    '# Results',
    'Made by `npm run bench -- results` from [results.json](results.json); do not edit it. ' +
      '[bench/README.md](../bench/README.md) says what is measured and how, [benchmarks.md](benchmarks.md) has native and older runs.',
    provenance(results),
    ...problemParts(results),
    '## Where Varve is slower than a peer',
    slowerText(comparisons),
    '## Targets that were missed',
    missedText(results),
    '## Varve beside the best peer',
    summaryText(comparisons),
    ...charts.map(({ file, title }) => `![${title}](results/${file})`),
    '## Every suite',
    'A ratio is how many times the rate of the row Varve reaches: `varve-sync` in the worker, `varve` from the page. Percentiles are of a call, of the mean of a group of calls too short for the timer, or of 100 calls in flight.',
    ...tablesOf(results.rows),
    ...failoverTables(results.failovers ?? []).map(
      ({ title, columns, lines }) =>
        `### ${title}\n\n${table(
          columns,
          lines.map(({ cells }) => cells),
          [0, 1],
        )}`,
    ),
    ...storageParts(results),
    '## What was compared',
    enginesText(results),
  ].join('\n\n')}\n`;
}

/** Machine, browser, date and commit, in a list. */
export function provenance(results: Results): string {
  const { machine, load, browser, dates, source, plans, versions, sizes } = results;
  const days = [...new Set(dates.map((date) => date.slice(0, 10)))].join(', ');
  const tree = source.clean ? '' : ', with changes that were not committed';
  const commits = [...commitsOf(results)].map(
    ([commit, suites]) => `\`${commit}\`${suites.length === 0 ? '' : ` (${suites.join(', ')})`}`,
  );
  const told = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `- Machine: ${machine.processor}, ${machine.cores} cores, ${bytes(machine.memoryBytes)} of memory, ${machine.system}; load average ${load} at the end of a run, the run included`,
    `- Browser: ${browser}, headless, persistent profile; Node ${machine.node}${told.length === 0 ? '' : `; ${told.join(', ')}`}`,
    `- Date: ${days}. Commit: ${commits.join('; ')}${tree}`,
    `- Runs: ${plansText(plans)}`,
    `- Sizes after gzip: engine ${bytes(sizes.wasm)}, \`varve\` ${bytes(sizes.client)}, \`varve/synchronous\` ${bytes(sizes.sync)}`,
  ].join('\n');
}

/** How it was measured; which suites, where not all were measured alike. */
function plansText(plans: readonly PlanNote[]): string {
  const suites = new Map<string, string[]>();
  for (const { mode, rounds, seed, scale, custom, suites: own } of plans) {
    const round = custom.round_ms === undefined ? '' : ` of at most ${custom.round_ms} ms`;
    const text = `${mode}, ${rounds} interleaved rounds${round}, seed ${seed}${scale === 1 ? '' : `, scale ${scale}`}`;
    suites.set(text, [...(suites.get(text) ?? []), ...own]);
  }
  if (suites.size === 1) return [...suites.keys()].join();
  return [...suites].map(([text, own]) => `${text} (${[...new Set(own)].join(', ')})`).join('; ');
}

function problemParts({ problems, rows }: Results): string[] {
  const wrong = rows.filter(({ verified }) => !verified).map((row) => `${groupName(row)} ${row.engine}: not verified`);
  const all = [...problems, ...wrong];
  return all.length === 0 ? [] : ['## Problems', all.map((text) => `- ${text}`).join('\n')];
}

const COMPARED = ['suite', 'Varve', 'a second', 'peer', 'a second', 'Varve is', '95% interval'];

/** The cells of a comparison. */
export function comparisonCells({ varve, peer, ratio, low, high }: Comparison<ResultRow>): string[] {
  const interval = Number.isFinite(low) ? `${ratioText(low)} to ${ratioText(high)}` : 'one round';
  const figures = [rate(varve.opsPerSecond), peer.engine, rate(peer.opsPerSecond)];
  return [groupName(varve), varve.engine, ...figures, ratioText(ratio), interval];
}

function slowerText(comparisons: readonly Comparison<ResultRow>[]): string {
  const slower = slowerOf(comparisons);
  const counts = `${slower.length} of ${comparisons.length} comparisons with a peer`;
  if (comparisons.length === 0) return 'No peer was measured.';
  if (slower.length === 0) return `Nowhere: 0 of ${comparisons.length} comparisons with a peer.`;
  const isCertain = (one: Comparison): boolean => verdictOf(one) === 'slower';
  const within = slower.filter((one) => !isCertain(one));
  const sure = slower.filter(isCertain);
  return [
    `In ${counts}, the worst first; [slower.md](slower.md) says why.${within.length === 0 ? '' : ` In ${within.length} of them the rounds scatter by more than the difference; they stand below the others.`}`,
    ...(sure.length === 0 ? [] : [table(COMPARED, sure.map(comparisonCells), [0, 1, 3])]),
    ...(within.length === 0 ? [] : ['Within the scatter:', table(COMPARED, within.map(comparisonCells), [0, 1, 3])]),
  ].join('\n\n');
}

function missedText({ targets }: Results): string {
  const missed = targets.filter(({ reached }) => reached === false);
  const untold = targets.filter(({ reached }) => reached === null).length;
  const counts = `${missed.length} of ${targets.length - untold} targets${untold === 0 ? '' : ` (${untold} could not be told)`}.`;
  if (missed.length === 0) return `None: ${counts}`;
  return `${counts}\n\n${table(
    TARGET_COLUMNS,
    missed.map(({ cells }) => cells),
  )}`;
}

function summaryText(comparisons: readonly Comparison<ResultRow>[]): string {
  const best = bestPeers(comparisons);
  if (best.length === 0) return 'No peer was measured.';
  const ahead = best.filter((one) => !isSlower(one)).length;
  return `Ahead of the best peer in ${ahead} of ${best.length} rows. A ratio is the geometric mean of those of the rounds, with its interval; rates are medians of the rounds.\n\n${table(COMPARED, best.map(comparisonCells), [0, 1, 3])}`;
}

/** A column of the tables of all rows: what stands in the cell of a row in its group. */
type CellOf = (row: ResultRow, group: readonly ResultRow[]) => string;

const COLUMNS: readonly (readonly [title: string, cell: CellOf])[] = [
  ['part', ({ part }) => part ?? ''],
  ['engine', ({ engine }) => engine],
  ['durability', ({ durability }) => durability],
  ['a second', ({ opsPerSecond, unit }) => `${rate(opsPerSecond)}${unit === 'ops' ? '' : ` ${unit}`}`],
  ['spread', (row) => percent(spreadOf(row))],
  ['p50', ({ p50 }) => duration(p50)],
  ['p95', ({ p95 }) => duration(p95)],
  ['p99', ({ p99 }) => duration(p99)],
  ['max', ({ max }) => duration(max)],
  ['verified', ({ verified, errors }) => `${verified ? 'yes' : 'NO'}${errors ? `, ${errors} errors` : ''}`],
  ['Varve is', (row, group) => besideText(varveBeside(row, group))],
  ['note', ({ note }) => note ?? ''],
];
const WORDS: ReadonlySet<string> = new Set(['part', 'engine', 'durability', 'note']);

/** A table for each suite and place, the parts of a suite below one another. */
function tablesOf(rows: readonly ResultRow[]): string[] {
  return [...new Set(rows.map(titleOf))].map((title) => {
    const groups = groupsOf(rows.filter((row) => titleOf(row) === title));
    const lines = groups.flatMap((group) => group.map((row) => COLUMNS.map(([, cell]) => cell(row, group))));
    const titles = COLUMNS.map(([name]) => name);
    return `### ${title}\n\n${filledTable(titles, lines, WORDS)}`;
  });
}

function titleOf({ suite, place }: ResultRow): string {
  return groupName({ suite, place });
}

function storageParts({ storage }: Results): string[] {
  if (storage.length === 0) return [];
  const rows = storage.map((report) => [
    `${report.engine} after ${report.suite}`,
    String(report.entries),
    bytes(report.logicalBytes),
    bytes(report.diskBytes),
    report.diskBytesPerLogicalByte.toFixed(2),
    report.writeAmplification?.toFixed(2) ?? '-',
    String(report.readAmplification),
    bytes(report.memoryBytes),
  ]);
  const columns = [
    ...['store', 'entries', 'keys and values', 'files', 'space', 'write amplification', 'runs', 'memory in use'],
  ];
  return ['## Storage', table(columns, rows)];
}

function enginesText({ engines }: Results): string {
  return engines
    .map(({ name, about, version, url }) => {
      const title = url === undefined ? `\`${name}\`` : `[\`${name}\`](${url})`;
      return `- ${title}${version === undefined ? '' : ` ${version}`}${about === undefined ? '' : `: ${about}`}`;
    })
    .join('\n');
}
