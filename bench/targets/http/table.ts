/**
 * The tables that are printed: one for each suite, in Markdown.
 *
 * Invariant: every row shows its errors, whether it was verified and how far its rounds lie apart; nothing is left out because
 * it looks bad.
 */

import { duration, percent, rate, times } from '../../core/figures.ts';
import { spreadOf } from '../../core/rows.ts';
import type { HttpRow } from './row.ts';
import { verdictText } from './thresholds.ts';

interface Column {
  readonly title: string;
  /** Text stands left, figures right. */
  readonly isText?: boolean;
  readonly cell: (row: HttpRow) => string;
}

const COLUMNS: readonly Column[] = [
  { title: 'work', isText: true, cell: (row) => row.work },
  { title: 'server', isText: true, cell: (row) => row.runtime },
  { title: 'durability', isText: true, cell: (row) => row.durability },
  { title: 'connections', cell: (row) => String(row.connections) },
  { title: 'loop', isText: true, cell: (row) => (row.due === undefined ? row.loop : `open, ${rate(row.due)}/s due`) },
  { title: 'requests/s', cell: (row) => rate(row.requestsPerSecond) },
  { title: 'ops/s', cell: (row) => rate(row.opsPerSecond) },
  {
    title: 'of the bare server',
    cell: (row) => (row.barePerSecond === undefined ? '' : times(row.requestsPerSecond / row.barePerSecond)),
  },
  { title: 'p50', cell: (row) => duration(row.p50) },
  { title: 'p95', cell: (row) => duration(row.p95) },
  { title: 'p99', cell: (row) => duration(row.p99) },
  { title: 'max', cell: (row) => duration(row.max) },
  { title: 'errors', cell: (row) => percent(row.errorShare) },
  { title: 'spread', cell: (row) => (row.rounds.length < 2 ? '' : percent(spreadOf(row))) },
  { title: 'verified', cell: (row) => (row.verified ? 'yes' : '**no**') },
  { title: 'thresholds', isText: true, cell: (row) => (row.verdict === undefined ? '' : verdictText(row.verdict)) },
  { title: 'published, another machine', isText: true, cell: (row) => row.published ?? '' },
];

/** The rows as one table a suite; floors are in their rows' ratios. Columns in which nothing stands are left out. */
export function tables(rows: readonly HttpRow[]): string {
  const suites = [...new Set(rows.map(({ suite }) => suite))];
  return suites.map((suite) => `### ${suite}\n\n${tableOf(rows.filter((row) => row.suite === suite))}`).join('\n\n');
}

function tableOf(rows: readonly HttpRow[]): string {
  const own = rows.filter(({ engine }) => engine !== 'bare');
  const columns = COLUMNS.filter(({ cell }) => own.some((row) => cell(row) !== ''));
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    line(columns.map(({ title }) => title)),
    line(columns.map(({ isText }) => (isText ? '---' : '--:'))),
    ...own.map((row) => line(columns.map(({ cell }) => cell(row)))),
  ].join('\n');
}
