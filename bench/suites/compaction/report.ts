/** The tables of the suite `compaction`: each phase before and after, and what the compaction made of it. */

import { bytes, duration, percent, rate } from '../../core/figures.ts';
import type { Row } from '../../core/rows.ts';
import type { SuiteLine, SuiteTable } from '../../core/suite-table.ts';

const READ_COLUMNS = [
  'phase',
  'before',
  'after',
  'change',
  'p50 before',
  'p50 after',
  'p99 before',
  'p99 after',
  'verified',
];
const DISK_COLUMNS = ['phase', 'files', 'bytes', 'change', 'entries', 'took', 'verified'];

/** The tables of a run, if it had the suite. */
export function compactionTables(rows: readonly Row[]): SuiteTable[] {
  const own = rows.filter(({ suite }) => suite === 'compaction');
  const reads = own.flatMap((before) => {
    const phase = before.phase?.match(/^(.*), before$/)?.[1];
    const after = own.find((row) => row.phase === `${phase}, after`);
    return phase === undefined || after === undefined
      ? []
      : [line([...readCells(phase, before, after)], before, after)];
  });
  const disk = own.flatMap((row) => (row.compaction === undefined ? [] : [line(diskCells(row, row.compaction), row)]));
  const tables: SuiteTable[] = [];
  const note =
    'Before: the tables as they were written, in the turn in which they were. After: compact() has merged them.';
  if (reads.length > 0) {
    tables.push({ title: 'compaction: reads', note, columns: READ_COLUMNS, lines: reads });
  }
  if (disk.length > 0) {
    tables.push({ title: 'compaction: files', note: undefined, columns: DISK_COLUMNS, lines: disk });
  }
  return tables;
}

function line(cells: readonly string[], ...rows: readonly Row[]): SuiteLine {
  const verified = rows.every((row) => row.verified);
  return { cells: [...cells, verified ? 'yes' : 'NO'], role: 'varve', isBad: !verified, rows };
}

function readCells(phase: string, before: Row, after: Row): string[] {
  return [
    phase,
    `${rate(before.opsPerSecond)}/s`,
    `${rate(after.opsPerSecond)}/s`,
    change(before.opsPerSecond, after.opsPerSecond),
    duration(before.p50),
    duration(after.p50),
    duration(before.p99),
    duration(after.p99),
  ];
}

function diskCells(row: Row, { before, after }: NonNullable<Row['compaction']>): string[] {
  return [
    row.phase ?? '',
    `${before.files} -> ${after.files}`,
    `${bytes(before.bytes)} -> ${bytes(after.bytes)}`,
    change(before.bytes, after.bytes),
    `${before.entries} -> ${after.entries}`,
    duration(row.seconds * 1e6),
  ];
}

/** By how much a figure changed: +510%, -90%. */
function change(before: number, after: number): string {
  const share = after / before - 1;
  return `${share > 0 ? '+' : '-'}${percent(Math.abs(share))}`;
}
