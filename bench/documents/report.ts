/**
 * The table of the suite `documents`.
 *
 * Invariant: a ratio is of two rows of the same call.
 */

import { duration, percent, rate, times } from '../figures.ts';
import { type Row, spreadOf } from '../rows.ts';
import type { TabTable } from '../tabs/report.ts';
import { DOCUMENT_CALLS, type DocumentCall, SEARCHED } from './suite.ts';

const COLUMNS = ['call', 'engine', 'per second', 'spread', 'p50', 'p95', 'p99', 'verified', 'Varve is'];
const TEXTS: Readonly<Record<DocumentCall, string>> = {
  insert: 'insert',
  insertMany: `insertMany by ${SEARCHED.batch}, documents`,
  get: 'get by key',
  update: 'update, two indexes change',
  find: `find by index, ${SEARCHED.found} documents`,
  stream: `stream by index, ${SEARCHED.streamed} documents`,
  mix: 'mix: 50% get, 20% find, 20% update, 5% insert, 5% delete',
};

/** The table of a run, if it had the suite. */
export function documentTables(rows: readonly Row[]): TabTable[] {
  const own = rows.filter(({ document }) => document !== undefined);
  if (own.length === 0) return [];
  const ordered = DOCUMENT_CALLS.flatMap((call) => own.filter((row) => row.document === call));
  const lines = ordered.map((row) => ({ cells: cellsOf(row, own), role: row.role, isBad: !row.verified }));
  const note =
    'Documents of about 300 bytes with four indexes, one of them unique and one of two values, from the page, awaited.';
  return [{ title: 'documents: documents with secondary indexes', note, columns: COLUMNS, lines }];
}

function cellsOf(row: Row, rows: readonly Row[]): string[] {
  const varve = rows.find(({ role, document }) => role === 'varve' && document === row.document);
  const ratio = varve === undefined || varve === row ? '' : times(varve.opsPerSecond / row.opsPerSecond);
  return [
    row.document === undefined ? '' : TEXTS[row.document],
    row.engine,
    rate(row.opsPerSecond),
    percent(spreadOf(row)),
    duration(row.p50),
    duration(row.p95),
    duration(row.p99),
    row.verified ? 'yes' : 'NO',
    ratio,
  ];
}
