/**
 * The result of a run, and its Markdown: the targets, every suite with its ratios, the storage report, what was run on.
 */

import type { Access, Engine } from './engine.ts';
import { bytes, duration, percent, rate, times } from './figures.ts';
import type { Plan, StorageReport } from './plan.ts';
import { type Failover, type Row, spreadOf } from './rows.ts';
import { table } from './table.ts';
import { tabTables } from './tabs/report.ts';
import { type Judged, judge } from './targets.ts';
import { SUITES } from './workloads.ts';

/** What a run was made on. */
export interface Environment {
  readonly date: string;
  readonly userAgent: string;
  readonly cores: number;
  readonly timerStepMicroseconds: number;
  readonly crossOriginIsolated: boolean;
  readonly quick: boolean;
}

/** What `--json` writes. */
export interface Result {
  readonly environment: Environment;
  readonly plan: Plan;
  readonly rows: readonly Row[];
  readonly failovers: readonly Failover[];
  readonly storage: readonly StorageReport[];
  /** Everything that failed or was not as written. Empty in a good run. */
  readonly problems: readonly string[];
}

const ACCESS_TITLES: Readonly<Record<Access, string>> = {
  worker: 'in the worker',
  page: 'from the page, awaited',
  inflight: 'from the page, 100 in flight',
};

/** The whole report in Markdown. */
export function markdown(result: Result, engines: readonly Engine[]): string {
  const parts = [
    '# Varve benchmark',
    environmentLine(result.environment),
    ...problemLines(result.problems),
    '## Targets',
    targetTable(judge(result.rows)),
    ...groupsOf(result.rows).map(suiteTable),
    ...tabTables(result.rows, result.failovers).map(({ title, columns, lines, note }) => {
      const cells = lines.map((line) => line.cells);
      return `### ${title}\n\n${note === undefined ? '' : `${note}\n\n`}${table(columns, cells)}`;
    }),
    '## Storage',
    ...shownStorage(result.storage).map(storageLines),
    '## Engines',
    engines
      .filter(({ name }) => result.rows.some((row) => row.engine === name))
      .map(({ name, about }) => `- \`${name}\`: ${about}`)
      .join('\n'),
  ];
  return `${parts.join('\n\n')}\n`;
}

function environmentLine(environment: Environment): string {
  const mode = environment.quick ? 'quick' : 'full';
  const isolated = environment.crossOriginIsolated ? 'isolated' : 'not isolated, so the timer is coarse';
  const step = duration(environment.timerStepMicroseconds);
  return `${environment.date}, ${mode} run, ${environment.cores} cores, timer step ${step} (${isolated}).\n${environment.userAgent}`;
}

function problemLines(problems: readonly string[]): string[] {
  return problems.length === 0 ? [] : ['## Problems', problems.map((text) => `- ${text}`).join('\n')];
}

/** The rows of one suite through one access, in the order of the suites. */
export interface RowGroup {
  readonly title: string;
  readonly rows: readonly Row[];
}

/** Groups the rows by suite and access. */
export function groupsOf(rows: readonly Row[]): RowGroup[] {
  const accesses = Object.keys(ACCESS_TITLES) as Access[];
  return accesses.flatMap((access) =>
    SUITES.flatMap(({ name, title }) => {
      const found = rows.filter((row) => row.suite === name && row.access === access);
      return found.length === 0 ? [] : [{ title: `${name}: ${title}, ${ACCESS_TITLES[access]}`, rows: found }];
    }),
  );
}

/** The titles of the columns of a suite's table. */
export const COLUMNS = [
  'engine',
  'durability',
  'ops',
  'seconds',
  'per second',
  'spread',
  'MB/s',
  'p50',
  'p95',
  'p99',
  'max',
  'hits',
  'verified',
  'group',
  'Varve is',
] as const;

/** The cells of a row, as texts. `group` gives what Varve's ratio is computed from. */
export function cellsOf(row: Row, group: RowGroup): string[] {
  const busy = row.busy > 0 ? `, ${row.busy} busy` : '';
  return [
    row.engine,
    row.durability,
    `${row.ops} ${row.unit}`,
    row.seconds.toFixed(3),
    rate(row.opsPerSecond),
    `${percent(spreadOf(row))}${busy}`,
    row.megabytesPerSecond.toFixed(1),
    duration(row.p50),
    duration(row.p95),
    duration(row.p99),
    duration(row.max),
    row.hitRate === null ? '-' : percent(row.hitRate),
    row.verified ? 'yes' : 'NO',
    String(row.groupSize),
    ratioCell(row, group),
  ];
}

/** How many times this row's rate the first Varve row of the group reaches. */
function ratioCell(row: Row, group: RowGroup): string {
  const varve = group.rows.find(({ role }) => role === 'varve');
  if (varve === undefined || varve === row) return '';
  return times(varve.opsPerSecond / row.opsPerSecond);
}

function suiteTable(group: RowGroup): string {
  return `### ${group.title}\n\n${table(
    COLUMNS,
    group.rows.map((row) => cellsOf(row, group)),
  )}`;
}

/** The titles of the columns of the targets. */
export const TARGET_COLUMNS = ['target', 'Varve', 'against', 'measured', 'ratio', 'wanted', 'reached'] as const;

/** The cells of a judged target, as texts. */
export function targetCells({ target, varve, other, ratio, reached }: Judged): string[] {
  const wanted = [
    ...(target.ratio === undefined ? [] : [times(target.ratio)]),
    ...(target.figure !== undefined ? [`${rate(target.figure)}/s`] : []),
  ];
  return [
    target.title,
    `${rate(varve.opsPerSecond)} ${varve.unit}/s`,
    target.against ?? '-',
    other === undefined ? '-' : rate(other.opsPerSecond),
    ratio === undefined ? '-' : times(ratio),
    wanted.join(' or '),
    reached === undefined ? '-' : reached ? 'yes' : 'no',
  ];
}

function targetTable(judged: readonly Judged[]): string {
  return judged.length === 0 ? 'None of their rows were run.' : table(TARGET_COLUMNS, judged.map(targetCells));
}

/** Which stores are worth showing: the compacted ones, of one engine; all of them where there are none. */
export function shownStorage(storage: readonly StorageReport[]): readonly StorageReport[] {
  const compacted = storage.filter((report) => report.compacted);
  const shown = compacted.length > 0 ? compacted : storage;
  return shown.filter(({ engine }) => engine === shown[0]?.engine);
}

function storageLines(storage: StorageReport): string {
  const head =
    `\`${storage.engine}\` after \`${storage.suite}\`: ${storage.entries} entries, ` +
    `${bytes(storage.logicalBytes)} of keys and values, ${bytes(storage.diskBytes)} of files ` +
    `(${storage.diskBytesPerLogicalByte.toFixed(2)} per logical byte${storage.compacted ? ', wanted 1.10' : ''}).`;
  return [head, '', ...storageItems(storage).map(([name, value]) => `- ${name}: ${value}`)].join('\n');
}

/** The report of one store, as pairs of texts. */
export function storageItems(storage: StorageReport): [string, string][] {
  const said = Object.entries(storage.stats).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [
    ['WAL segments', String(storage.walSegments)],
    ['tables per level', storage.tablesPerLevel.join(', ')],
    ['write amplification', storage.writeAmplification.toFixed(2)],
    ['read amplification (runs)', String(storage.readAmplification)],
    ['space amplification', storage.diskBytesPerLogicalByte.toFixed(2)],
    ['memory in use', bytes(storage.memoryBytes)],
    ['the store says', said.join(', ')],
  ];
}
