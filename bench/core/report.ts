/**
 * The result of a run, and its Markdown: the targets, every suite with its ratios, the storage report, what was run on.
 */

import { ACCESS_TITLES, casesOf, nameOf } from './cases.ts';
import { besideText, bestPeers, comparisonsOf, ratioText, varveBeside } from './comparison.ts';
import type { Access, Engine } from './engine.ts';
import { bytes, duration, percent, rate, times } from './figures.ts';
import { ACCESSES } from './options.ts';
import type { Plan, StorageReport } from './plan.ts';
import { type Failover, noteOf, type Row, spreadOf } from './rows.ts';
import { ordinaryRows, specialTables } from './special-tables.ts';
import { filledTable, table } from './table.ts';
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

/** The whole report in Markdown. */
export function markdown(result: Result, engines: readonly Engine[]): string {
  const parts = [
    '# Varve benchmark',
    environmentLine(result.environment),
    ...problemLines(result.problems),
    ...bestPeerSection(result.rows),
    '## Targets',
    targetTable(judge(result.rows)),
    ...groupsOf(ordinaryRows(result.rows)).map(suiteTable),
    ...specialTables(result.rows, result.failovers).map(({ title, columns, words, lines, note }) => {
      const cells = lines.map((line) => line.cells);
      return `### ${title}\n\n${note === undefined ? '' : `${note}\n\n`}${table(columns, cells, words)}`;
    }),
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

const BEST_PEER_COLUMNS = [
  'case',
  'Varve',
  'per second',
  'best peer',
  'per second',
  'Varve is',
  '95% interval',
  'durability',
];

/** What each row of Varve is beside the best peer that is like it, all suites in one table. */
function bestPeerSection(rows: readonly Row[]): string[] {
  const lines = casesOf(rows).flatMap((one) =>
    bestPeers(comparisonsOf([one.rows])).map(({ varve, peer, ratio, low, high }) => [
      nameOf(one),
      varve.engine,
      rate(varve.opsPerSecond),
      peer.engine,
      rate(peer.opsPerSecond),
      ratioText(ratio),
      Number.isFinite(high) ? `${ratioText(low)} to ${ratioText(high)}` : 'one round',
      varve.durability,
    ]),
  );
  return lines.length === 0 ? [] : ['## Beside the best peer', table(BEST_PEER_COLUMNS, lines, [0, 1, 3, 7])];
}

function problemLines(problems: readonly string[]): string[] {
  return problems.length === 0 ? [] : ['## Problems', problems.map((text) => `- ${text}`).join('\n')];
}

/** The rows of one suite through one access, in the order of the suites. */
export interface RowGroup {
  readonly title: string;
  readonly rows: readonly Row[];
}

/** Groups the rows by suite and access. A saved run can have suites that are not there any more: they come last. */
export function groupsOf(rows: readonly Row[]): RowGroup[] {
  const choices = new Map(CHOICES.map((choice) => [choice.name, choice]));
  const names = [...new Set([...choices.keys(), ...rows.map(({ suite }) => suite)])];
  const isJoined = (name: string): boolean => choices.get(name)?.oneTable === true;
  const titleOf = (name: string): string => {
    const title = choices.get(name)?.title;
    return title === undefined ? name : `${name}: ${title}`;
  };
  const found = (name: string, access?: Access): RowGroup[] => {
    const own = rows.filter((row) => row.suite === name && (access === undefined || row.access === access));
    const title = access === undefined ? titleOf(name) : `${titleOf(name)}, ${ACCESS_TITLES[access]}`;
    return own.length === 0 ? [] : [{ title, rows: own }];
  };
  const each = ACCESSES.flatMap((access) =>
    names.filter((name) => !isJoined(name)).flatMap((name) => found(name, access)),
  );
  return [...each, ...names.filter(isJoined).flatMap((name) => found(name))];
}

const COLUMNS = [
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
  'note',
] as const;

/** The cells of a row, as texts. `group` gives what Varve's ratio is computed from. */
function cellsOf(row: Row, group: RowGroup): string[] {
  return [
    titleOf(row, group),
    row.durability,
    `${row.ops} ${row.unit}`,
    row.seconds.toFixed(3),
    rate(row.opsPerSecond),
    percent(spreadOf(row)),
    row.megabytesPerSecond.toFixed(1),
    duration(row.p50),
    duration(row.p95),
    duration(row.p99),
    duration(row.max),
    row.hitRate === null ? '-' : percent(row.hitRate),
    row.verified ? 'yes' : 'NO',
    String(row.groupSize),
    besideText(varveBeside(row, alike(row, group))),
    noteOf(row) ?? '',
  ];
}

/** The engine, and what else tells the row from others of its table. */
function titleOf(row: Row, { rows }: RowGroup): string {
  const access = rows.some((other) => other.access !== row.access) ? [ACCESS_TITLES[row.access]] : [];
  return [row.engine, ...(row.phase === undefined ? [] : [row.phase]), ...access].join(', ');
}

/** The rows of the group that did the same: of the same phase and way in. */
function alike(row: Row, { rows }: RowGroup): Row[] {
  return rows.filter(({ phase, access }) => phase === row.phase && access === row.access);
}

const WORDS: ReadonlySet<string> = new Set(['engine', 'durability', 'note']);

function suiteTable(group: RowGroup): string {
  const lines = group.rows.map((row) => cellsOf(row, group));
  return `### ${group.title}\n\n${filledTable(COLUMNS, lines, WORDS)}`;
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
    ['write amplification', storage.writeAmplification?.toFixed(2) ?? '-'],
    ['read amplification (runs)', String(storage.readAmplification)],
    ['space amplification', storage.diskBytesPerLogicalByte.toFixed(2)],
    ['memory in use', bytes(storage.memoryBytes)],
    ['the store says', said.join(', ')],
  ];
}
