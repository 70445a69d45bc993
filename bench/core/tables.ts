/**
 * The tables of a result, for Markdown and for the page: Varve beside the best peers, targets, one table for each suite,
 * storage.
 *
 * Invariant: every row of a run is shown once. Nothing that a cell holds can end it early.
 */

import { bestPeers, type Comparison, comparisonsOf, intervalText, isSlower, ratioText } from './comparison.ts';
import { barsText, bytes, duration, percent, rate } from './figures.ts';
import { caseName, casesOf, type LifeSample, placeText, type Row, spreadOf } from './row.ts';
import type { StorageReport } from './storage.ts';
import { suites } from './suite.ts';
import { judge, TARGET_COLUMNS } from './targets.ts';

export interface Line {
  readonly cells: readonly string[];
  /** How it looks on the page: the role of its engine, or what is bad about it. */
  readonly look?: string;
}

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly lines: readonly Line[];
}

/** Columns whose cells are words, which stand to the left; the first one always does. */
const WORDS = new Set(
  'case,Varve,peer,best peer,durability,where,part,engine,note,row,beside,verdict,commit,runs,suites'.split(','),
);

export function isWords(column: string, index: number): boolean {
  return index === 0 || WORDS.has(column);
}

function filled({ title, columns, lines }: Table): Table {
  const shown = columns.map((_, i) => i).filter((i) => lines.some(({ cells }) => (cells[i] ?? '') !== ''));
  const pick = (cells: readonly string[]): string[] => shown.map((i) => cells[i] ?? '');
  return { title, columns: pick(columns), lines: lines.map((line) => ({ ...line, cells: pick(line.cells) })) };
}

/** A Markdown table whose columns line up, so that it can be read as text as well. */
export function markdownTable({ columns, lines }: Pick<Table, 'columns' | 'lines'>): string {
  const safe = (cell: string): string => cell.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|');
  const all = [columns, ...lines.map(({ cells }) => cells)].map((cells) => cells.map(safe));
  const widths = columns.map((_, i) => Math.max(3, ...all.map((cells) => cells[i]?.length ?? 0)));
  const isLeft = columns.map(isWords);
  const [head, ...body] = all.map((cells) => {
    return `| ${widths.map((width, i) => (isLeft[i] ? (cells[i] ?? '').padEnd(width) : (cells[i] ?? '').padStart(width))).join(' | ')} |`;
  });
  const rule = widths.map((width, i) => (isLeft[i] ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [head, `| ${rule.join(' | ')} |`, ...body].join('\n');
}

export function markdownOf(table: Table): string {
  return `### ${table.title}\n\n${markdownTable(table)}`;
}

const BESIDE = ['case', 'Varve', 'a second', 'peer', 'a second', 'Varve is', '95% interval', 'durability'];

export function comparisonTable(title: string, comparisons: readonly Comparison[]): Table {
  const lines = comparisons.map(({ varve, peer, ...ratio }): Line => {
    const [own, other] = [rate(varve.opsPerSecond), rate(peer.opsPerSecond)];
    const beside = [ratioText(ratio.ratio), intervalText(ratio), varve.durability];
    return {
      cells: [caseName(varve), varve.engine, own, peer.engine, other, ...beside],
      look: isSlower(ratio) ? 'behind' : 'varve',
    };
  });
  return { title, columns: BESIDE, lines };
}

function targetTable(rows: readonly Row[]): Table {
  const lines = judge(rows).map(({ cells, reached }) => ({ cells, look: reached === false ? 'missed' : '' }));
  return { title: 'Targets', columns: TARGET_COLUMNS, lines };
}

type CellOf = (row: Row, group: readonly Row[]) => string;

const beside =
  (text: (best: Comparison) => string): CellOf =>
  (row, group) => {
    const best = bestPeers(comparisonsOf([group])).find(({ varve }) => varve === row);
    return best === undefined ? '' : text(best);
  };

/** Empty where it is the longest call: then there were too few calls for a percentile, or only one. */
const percentile =
  (of: (row: Row) => number): CellOf =>
  (row) =>
    of(row) < row.max ? duration(of(row)) : '';

const both = (kind: Row['reads']): string => (kind ? `${duration(kind.p50)} / ${duration(kind.p99)}` : '');

function overTime(of: (sample: LifeSample) => number | undefined, shown: (most: number) => string): CellOf {
  return ({ life }) => barsText(life?.samples.map(of) ?? [], shown);
}

const COLUMNS: readonly (readonly [title: string, cell: CellOf])[] = [
  ['engine', ({ engine }) => engine],
  ['where', ({ access }) => placeText(access)],
  ['part', ({ phase = '' }) => phase],
  ['durability', ({ durability }) => durability],
  ['ops', ({ ops, unit }) => `${ops} ${unit}`],
  ['seconds', ({ seconds }) => seconds.toFixed(3)],
  ['a second', ({ opsPerSecond }) => rate(opsPerSecond)],
  ['spread', (row) => (row.rounds.length < 2 ? '' : percent(spreadOf(row)))],
  // Results of earlier versions of the benchmark have no MB/s and hits.
  ['MB/s', ({ megabytesPerSecond }) => megabytesPerSecond?.toFixed(1) ?? ''],
  ['p50', percentile(({ p50 }) => p50)],
  ['p95', percentile(({ p95 }) => p95)],
  ['p99', percentile(({ p99 }) => p99)],
  ['max', ({ p50, max }) => (p50 < max ? duration(max) : '')],
  ['reads p50/p99', ({ reads }) => both(reads)],
  ['writes p50/p99', ({ writes }) => both(writes)],
  ['hits', ({ hitRate }) => (typeof hitRate === 'number' ? percent(hitRate) : '')],
  ['errors', ({ errors }) => (errors === undefined ? '' : String(errors))],
  ['verified', ({ verified }) => (verified ? 'yes' : 'NO')],
  ['group', ({ groupSize }) => (groupSize === 1 ? '' : String(groupSize))],
  ['best peer', beside(({ peer }) => peer.engine)],
  ['its rate', beside(({ peer }) => rate(peer.opsPerSecond))],
  ['Varve is', beside(({ ratio }) => ratioText(ratio))],
  ['95% interval', beside(intervalText)],
  ['rates', overTime(({ stepsPerSecond }) => stepsPerSecond, rate)],
  ['p99s', overTime(({ p99 }) => p99, duration)],
  ['disk', overTime(({ disk }) => disk?.bytes, bytes)],
  ['memory', overTime(({ memoryBytes }) => memoryBytes, bytes)],
  ['note', ({ note = '' }) => note],
];

/** The rows of a suite. `own`: those of Varve alone, with these columns. */
export function suiteTable(title: string, rows: readonly Row[], own?: readonly string[]): Table {
  const columns = COLUMNS.filter(([head]) => own?.includes(head) ?? true);
  const lines = casesOf(rows).flatMap((group) =>
    group
      .filter(({ role }) => own === undefined || role === 'varve')
      .map((row): Line => {
        return { cells: columns.map(([, cell]) => cell(row, group)), look: row.verified ? row.role : 'missed' };
      }),
  );
  return filled({ title, columns: columns.map(([head]) => head), lines });
}

/** A table for each suite, in the order of the suites; of suites that are not there any more behind them. */
export function suiteTables(rows: readonly Row[]): Table[] {
  const titles = new Map(suites().map(({ name, title }) => [name, `${name}: ${title}`]));
  const tables = [...new Set([...titles.keys(), ...rows.map(({ suite }) => suite)])].map((name) =>
    suiteTable(
      titles.get(name) ?? name,
      rows.filter(({ suite }) => suite === name),
    ),
  );
  return tables.filter(({ lines }) => lines.length > 0);
}

/** Which stores are worth showing: the compacted ones, of one engine; all of them where there are none. */
export function shownStorage(storage: readonly StorageReport[]): readonly StorageReport[] {
  const compacted = storage.filter((report) => report.compacted);
  const shown = compacted.length > 0 ? compacted : storage;
  return shown.filter(({ engine }) => engine === shown[0]?.engine);
}

const STORAGE =
  'store,entries,keys and values,files,space,write amplification,runs a read may visit,WAL segments,tables per level,memory';

export function storageTable(storage: readonly StorageReport[]): Table {
  const lines = shownStorage(storage).map((report) => {
    const sizes = [String(report.entries), bytes(report.logicalBytes), bytes(report.diskBytes)];
    const space = [report.diskBytesPerLogicalByte.toFixed(2), report.writeAmplification?.toFixed(2) ?? '-'];
    const shape = [String(report.readAmplification), String(report.walSegments), report.tablesPerLevel.join(' ')];
    return {
      cells: [`${report.engine} after ${report.suite}`, ...sizes, ...space, ...shape, bytes(report.memoryBytes)],
    };
  });
  return { title: 'Storage', columns: STORAGE.split(','), lines };
}

/** The tables of a result that have lines, in the order in which they are read. */
export function tablesOf(rows: readonly Row[], storage: readonly StorageReport[]): Table[] {
  const best = comparisonTable('Beside the best peer', bestPeers(comparisonsOf(casesOf(rows))));
  const all = [best, targetTable(rows), ...suiteTables(rows), storageTable(storage)];
  return all.filter(({ lines }) => lines.length > 0);
}
