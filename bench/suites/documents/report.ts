/**
 * The table of the suite `documents`.
 *
 * Invariant: a ratio is of two rows of the same call.
 */

import { besideText, varveBeside } from '../../core/comparison.ts';
import type { Row } from '../../core/rows.ts';
import { FIGURE_COLUMNS, figureCells, type SuiteTable } from '../../core/suite-table.ts';
import { DOCUMENT_SUITE } from '../../core/workloads.ts';
import { DOCUMENT_CALLS, type DocumentCall, SEARCHED } from './suite.ts';

const COLUMNS = ['call', 'made', 'engine', ...FIGURE_COLUMNS, 'Varve is'];
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
export function documentTables(rows: readonly Row[]): SuiteTable[] {
  const suite = rows.filter((row) => row.suite === DOCUMENT_SUITE.name);
  const own = (['page', 'inflight'] as const).flatMap((access) =>
    DOCUMENT_CALLS.flatMap((call) => suite.filter((row) => row.phase === call && row.access === access)),
  );
  if (own.length === 0) return [];
  const lines = own.map((row) => ({
    cells: cellsOf(row, own),
    role: row.role,
    isBad: !row.verified,
    rows: [row],
  }));
  const note =
    'Documents of about 300 bytes with four indexes, one of them unique and one of two values, from the page: each call awaited, or many at once. Percentiles of those are of what all of them took together.';
  return [
    { title: `${DOCUMENT_SUITE.name}: ${DOCUMENT_SUITE.title}`, note, columns: COLUMNS, words: [0, 1, 2], lines },
  ];
}

function cellsOf(row: Row, rows: readonly Row[]): string[] {
  const ratio = varveBeside(
    row,
    rows.filter(({ phase, access }) => phase === row.phase && access === row.access),
  );
  const made = row.access === 'page' ? 'awaited' : `${row.groupSize} at once`;
  return [TEXTS[row.phase as DocumentCall], made, row.engine, ...figureCells(row), besideText(ratio)];
}
