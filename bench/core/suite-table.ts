/**
 * A table that a suite of its own kind makes of its rows: several tabs, documents, compactions.
 *
 * Invariant: a line names the rows that it shows, so that no row of a run is shown twice or left out (special-tables.ts).
 */

import type { Role } from './engine.ts';
import { duration, percent, rate } from './figures.ts';
import { type Row, spreadOf } from './rows.ts';

/** One line of such a table. */
export interface SuiteLine {
  readonly cells: readonly string[];
  readonly role: Role;
  /** What it shows was not verified. */
  readonly isBad: boolean;
  /** The rows that it is made of; none where it is made of something else. */
  readonly rows: readonly Row[];
}

/** A table, to be shown or printed. */
export interface SuiteTable {
  readonly title: string;
  readonly note: string | undefined;
  readonly columns: readonly string[];
  /** Which columns are words, not figures; the first one is. */
  readonly words?: readonly number[];
  readonly lines: readonly SuiteLine[];
}

/** The titles of the figures that every table of calls has. */
export const FIGURE_COLUMNS = ['per second', 'spread', 'p50', 'p95', 'p99', 'verified'] as const;

/** Those figures of a row, as texts. */
export function figureCells(row: Row): string[] {
  return [
    rate(row.opsPerSecond),
    percent(spreadOf(row)),
    duration(row.p50),
    duration(row.p95),
    duration(row.p99),
    row.verified ? 'yes' : 'NO',
  ];
}
