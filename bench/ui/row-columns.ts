/**
 * The columns of every figure of a row, as CSV has them: plain numbers, units in the titles.
 *
 * Invariant: nothing is rounded and nothing left out but histogram and timeline, which only JSON has room for.
 */

import type { Result } from '../core/report.ts';
import { noteOf, type Row, spreadOf } from '../core/rows.ts';
import type { TextTable } from './table-text.ts';

const COLUMNS: readonly (readonly [string, (row: Row) => string | number | boolean | null | undefined])[] = [
  ['suite', (row) => row.suite],
  ['access', (row) => row.access],
  ['phase', (row) => row.phase],
  ['engine', (row) => row.engine],
  ['engine_version', (row) => row.engineVersion],
  ['role', (row) => row.role],
  ['durability', (row) => row.durability],
  ['tabs', (row) => row.tabs?.count],
  ['tab_role', (row) => row.tabs?.role],
  ['tab_call', (row) => row.tabs?.call],
  ['tab_load', (row) => row.tabs?.load],
  ['unit', (row) => row.unit],
  ['ops', (row) => row.ops],
  ['elapsed_s', (row) => row.seconds],
  ['ops_per_second', (row) => row.opsPerSecond],
  ['spread', (row) => spreadOf(row)],
  ['megabytes_per_second', (row) => row.megabytesPerSecond],
  ['p50_us', (row) => row.p50],
  ['p95_us', (row) => row.p95],
  ['p99_us', (row) => row.p99],
  ['max_us', (row) => row.max],
  ['hit_rate', (row) => row.hitRate],
  ['verified', (row) => row.verified],
  ['group_size', (row) => row.groupSize],
  ['rounds_ops_per_second', (row) => row.rounds.join(' ')],
  ['wasm_bytes', (row) => row.memory?.wasmBytes],
  ['heap_bytes', (row) => row.memory?.heapBytes],
  ['cpu_busy_ms', (row) => row.cpu?.busy_ms],
  ['note', noteOf],
];

/** Every row of a result. */
export function figuresOf({ rows }: Pick<Result, 'rows'>): TextTable {
  return {
    titles: COLUMNS.map(([title]) => title),
    lines: rows.map((row) => COLUMNS.map(([, figureIn]) => cellOf(figureIn(row)))),
  };
}

function cellOf(value: string | number | boolean | null | undefined): string {
  return value === undefined || value === null || Number.isNaN(value) ? '' : String(value);
}
