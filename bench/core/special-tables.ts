/**
 * The tables of the suites whose rows are no list of engines: several tabs, documents, compactions.
 *
 * Invariant: with the tables of `groupsOf` (report.ts), which take the rest, every row of a run is shown once.
 */

import { compactionTables } from '../suites/compaction/report.ts';
import { documentTables } from '../suites/documents/report.ts';
import { tabTables } from '../suites/tabs/report.ts';
import type { Failover, Row } from './rows.ts';
import type { SuiteTable } from './suite-table.ts';

/** Those tables of a run. */
export function specialTables(rows: readonly Row[], failovers: readonly Failover[]): SuiteTable[] {
  return [...compactionTables(rows), ...documentTables(rows), ...tabTables(rows, failovers)];
}

/** The rows that stand in none of them. */
export function ordinaryRows(rows: readonly Row[]): Row[] {
  const special = new Set(specialTables(rows, []).flatMap(({ lines }) => lines.flatMap((line) => line.rows)));
  return rows.filter((row) => !special.has(row));
}
