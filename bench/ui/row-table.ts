/**
 * The tables of rows: those of one case, and all of a run.
 *
 * Invariant: the ratio of a row is of the first Varve row of its own case.
 */

import { ACCESS_WORDS, type Case, casesOf } from '../core/cases.ts';
import { besideText, varveBeside } from '../core/comparison.ts';
import { duration, percent, rate } from '../core/figures.ts';
import { noteOf, type Row, spreadOf } from '../core/rows.ts';
import { type Column, SortableTable } from './sortable-table.ts';
import { bestPeersIn } from './standing.ts';

/** A row beside the case it belongs to. */
interface Placed {
  readonly row: Row;
  readonly isBestPeer: boolean;
  /** How many times its rate Varve reaches. */
  readonly beside: number | undefined;
}

type RowColumn = Column<Placed>;

const latency = (title: string, of: (row: Row) => number, about: string): RowColumn => ({
  title,
  text: ({ row }) => duration(of(row)),
  value: ({ row }) => of(row),
  about,
});

const ENGINE: RowColumn = {
  title: 'engine',
  words: true,
  text: (placed) => `${placed.row.engine}${placed.isBestPeer ? ' (best peer)' : ''}`,
};
const RATE: RowColumn = {
  title: 'per second',
  text: ({ row }) => rate(row.opsPerSecond),
  value: ({ row }) => row.opsPerSecond,
  about: 'The median of the rounds',
};
const SPREAD: RowColumn = {
  title: 'spread',
  text: ({ row }) => percent(spreadOf(row)),
  value: ({ row }) => spreadOf(row),
  about: 'How far the rounds lie apart: (highest - lowest) / median',
};
const RATIO: RowColumn = {
  title: 'Varve is',
  text: ({ beside }) => besideText(beside),
  value: ({ beside }) => beside,
  about: 'How many times the rate of this row the first Varve row reaches',
};
const MEGABYTES: RowColumn = {
  title: 'MB/s',
  text: ({ row }) => row.megabytesPerSecond.toFixed(1),
  value: ({ row }) => row.megabytesPerSecond,
};
const VERIFIED: RowColumn = {
  title: 'verified',
  text: ({ row }) => (row.verified ? 'yes' : 'NO'),
  look: ({ row }) => (row.verified ? undefined : 'bad'),
  about: 'What was read is what had been written',
};
const DURABILITY: RowColumn = { title: 'durability', words: true, text: ({ row }) => row.durability };
const LATENCIES: readonly RowColumn[] = [
  latency('p50', (row) => row.p50, 'Half of the calls took no longer'),
  latency('p95', (row) => row.p95, '95% of the calls took no longer'),
  latency('p99', (row) => row.p99, '99% of the calls took no longer'),
  latency('max', (row) => row.max, 'The longest call'),
];

const OF_A_CASE: readonly RowColumn[] = [
  ENGINE,
  DURABILITY,
  RATE,
  SPREAD,
  RATIO,
  ...LATENCIES,
  MEGABYTES,
  { title: 'ops', text: ({ row }) => `${row.ops} ${row.unit}`, value: ({ row }) => row.ops },
  { title: 'seconds', text: ({ row }) => row.seconds.toFixed(3), value: ({ row }) => row.seconds },
  {
    title: 'hits',
    text: ({ row }) => (row.hitRate === null ? '-' : percent(row.hitRate)),
    value: ({ row }) => row.hitRate ?? undefined,
  },
  VERIFIED,
  {
    title: 'group',
    text: ({ row }) => String(row.groupSize),
    value: ({ row }) => row.groupSize,
    about: 'Calls that were timed as one; percentiles are then of the means of groups, in flight of waves',
  },
  { title: 'version', words: true, text: ({ row }) => row.engineVersion ?? '' },
  { title: 'note', words: true, text: ({ row }) => noteOf(row) ?? '' },
];

const OF_A_RUN: readonly RowColumn[] = [
  { title: 'suite', words: true, text: ({ row }) => `${row.suite}${row.phase === undefined ? '' : `, ${row.phase}`}` },
  { title: 'way in', words: true, text: ({ row }) => ACCESS_WORDS[row.access] },
  ENGINE,
  RATE,
  SPREAD,
  RATIO,
  ...LATENCIES,
  MEGABYTES,
  DURABILITY,
  VERIFIED,
];

/** The table of one case. */
export function caseTable(one: Case): HTMLElement {
  return tableOf(one.title, OF_A_CASE, placedOf([one]));
}

/** The table of all rows of a run. */
export function runTable(rows: readonly Row[]): HTMLElement {
  return tableOf('All rows', OF_A_RUN, placedOf(casesOf(rows)));
}

function tableOf(caption: string, columns: readonly RowColumn[], items: readonly Placed[]): HTMLElement {
  // A column that is empty in every row says nothing.
  const shown = columns.filter(({ text }) => items.some((item) => text(item) !== ''));
  return new SortableTable({ caption, columns: shown, look: ({ row }) => row.role }, items).element;
}

function placedOf(cases: readonly Case[]): Placed[] {
  return cases.flatMap(({ rows }) => {
    const peers = bestPeersIn(rows);
    return rows.map((row) => ({ row, isBestPeer: peers.has(row), beside: varveBeside(row, rows) }));
  });
}
