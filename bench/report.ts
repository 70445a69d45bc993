/**
 * The result of a run, and its Markdown: the targets, every suite with its ratios, the storage report, what was run on.
 */

import { BEST_PEER_COLUMNS, bestPeerCells } from './best-peer.ts';
import { documentTables } from './documents/report.ts';
import type { Access, Engine } from './engine.ts';
import { bytes, duration, percent, rate, times } from './figures.ts';
import type { Plan, StorageReport } from './plan.ts';
import { type Failover, type Row, spreadOf } from './rows.ts';
import { table } from './table.ts';
import { tabTables } from './tabs/report.ts';
import { type Judged, judge } from './targets.ts';
import { CHOICES } from './workloads.ts';

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
  /** What is no fault: engines that sat out a suite, and why. */
  readonly notes?: readonly string[];
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
    ...bestPeerSection(groupsOf(result.rows)),
    '## Targets',
    targetTable(judge(result.rows)),
    ...groupsOf(result.rows).map(suiteTable),
    ...[...documentTables(result.rows), ...tabTables(result.rows, result.failovers)].map(
      ({ title, columns, lines, note }) => {
        const cells = lines.map((line) => line.cells);
        return `### ${title}\n\n${note === undefined ? '' : `${note}\n\n`}${table(columns, cells)}`;
      },
    ),
    '## Storage',
    ...shownStorage(result.storage).map(storageLines),
    '## Engines',
    engines
      .filter(({ name }) => result.rows.some((row) => row.engine === name))
      .map(engineLine)
      .join('\n'),
    ...(result.notes ?? []).map((text) => `- ${text}`),
  ];
  return `${parts.join('\n\n')}\n`;
}

function engineLine({ name, version, about, recommended, url }: Engine): string {
  const used = recommended === undefined ? '' : ` Used as recommended: ${recommended}`;
  return `- \`${name}\`${version === undefined ? '' : ` ${version}`}: ${about}${used}${url === undefined ? '' : ` <${url}>`}`;
}

function environmentLine(environment: Environment): string {
  const mode = environment.quick ? 'quick' : 'full';
  const isolated = environment.crossOriginIsolated ? 'isolated' : 'not isolated, so the timer is coarse';
  const step = duration(environment.timerStepMicroseconds);
  return `${environment.date}, ${mode} run, ${environment.cores} cores, timer step ${step} (${isolated}).\n${environment.userAgent}`;
}

/** What Varve is beside the best peer of each suite, all suites in one table. */
function bestPeerSection(groups: readonly RowGroup[]): string[] {
  const lines = groups.flatMap(bestPeerCells);
  return lines.length === 0 ? [] : ['## Beside the best peer', table(BEST_PEER_COLUMNS, lines)];
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
  const ownTable = rows.filter(({ tabs }) => tabs === undefined);
  const each = accesses.flatMap((access) =>
    CHOICES.filter(({ oneTable }) => oneTable !== true).flatMap(({ name, title }) => {
      const found = ownTable.filter((row) => row.suite === name && row.access === access);
      return found.length === 0 ? [] : [{ title: `${name}: ${title}, ${ACCESS_TITLES[access]}`, rows: found }];
    }),
  );
  const joined = CHOICES.filter(({ oneTable }) => oneTable === true).flatMap(({ name, title }) => {
    const found = ownTable.filter((row) => row.suite === name);
    return found.length === 0 ? [] : [{ title: `${name}: ${title}`, rows: found }];
  });
  return [...each, ...joined];
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
    titleOf(row, group),
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

/** The engine, and what else tells the row from others of its table. */
function titleOf(row: Row, { rows }: RowGroup): string {
  const access = rows.some((other) => other.access !== row.access) ? [ACCESS_TITLES[row.access]] : [];
  return [row.engine, ...(row.phase === undefined ? [] : [row.phase]), ...access].join(', ');
}

/** How many times this row's rate the first Varve row of the group reaches, of the same phase and way in. */
function ratioCell(row: Row, group: RowGroup): string {
  const varve = group.rows.find(
    ({ role, phase, access }) => role === 'varve' && phase === row.phase && access === row.access,
  );
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
export function targetCells({ target, told, varve, other, ratio, reached }: Judged): string[] {
  const wanted = [
    ...(target.ratio === undefined ? [] : [times(target.ratio)]),
    ...(target.figure !== undefined ? [`${rate(target.figure)}/s`] : []),
  ];
  return [
    target.title,
    `${rate(varve.opsPerSecond)} ${varve.unit}/s`,
    target.against ?? '-',
    told?.measured ?? (other === undefined ? '-' : rate(other.opsPerSecond)),
    ratio === undefined ? '-' : times(ratio),
    told?.wanted ?? wanted.join(' or '),
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
