import { expect, test } from 'vitest';
import { fromBrowser, groupName } from '../results/row.ts';
import { DOCUMENT_CALLS } from '../suites/documents/suite.ts';
import { resultWith, rowWith } from '../ui/fixture.ts';
import { figuresOf } from '../ui/row-columns.ts';
import { casesOf } from './cases.ts';
import { duration } from './figures.ts';
import { groupsOf, markdown, storageItems } from './report.ts';
import type { Row } from './rows.ts';
import { ordinaryRows, specialTables } from './special-tables.ts';
import { CHOICES } from './workloads.ts';

let count = 0;

/** A row that its latency tells from all others. */
function one(suite: string, more: Partial<Row> = {}): Row {
  const p50 = 101 + count++;
  return rowWith({
    engine: 'varve-sync',
    role: 'varve',
    opsPerSecond: 1e6 / p50,
    suite,
    p50,
    p95: 1e4,
    p99: 2e4,
    ...more,
  });
}

const pair = (suite: string, more: Partial<Row> = {}): Row[] => [
  one(suite, more),
  one(suite, { engine: 'dexie', role: 'peer', ...more }),
];
const OWN = new Set(['compaction', 'documents', 'multi-tab', 'micro', 'scale', 'concurrent', 'readwhilewriting']);
const onDisk = { files: 1, bytes: 1, entries: 1 };
const compaction = { before: { files: 20, bytes: 2 ** 20, entries: 900 }, after: onDisk };
const tabs = { count: 2, call: 'get', role: 'all', load: 'all', place: 'tab' } as const;

/** Rows of every suite that there is, of those with phases and ways in as they make them, and of one that is gone. */
const rows: readonly Row[] = [
  ...CHOICES.filter(({ name }) => !OWN.has(name)).flatMap(({ name }) => pair(name)),
  ...(['page', 'inflight'] as const).flatMap((access) => pair('main-vs-worker', { access })),
  one('compaction', { phase: 'range of 50 over 20 tables, before' }),
  one('compaction', { phase: 'range of 50 over 20 tables, after' }),
  one('compaction', { phase: 'reads, before' }),
  one('compaction', { phase: '100 tables of the same keys', compaction, seconds: 0.000_9 }),
  ...DOCUMENT_CALLS.flatMap((phase) => pair('documents', { phase, access: 'page' })),
  ...pair('documents', { phase: 'mix', access: 'inflight' }),
  ...pair('documents', { phase: 'a call of an older run', access: 'page' }),
  ...pair('multi-tab', { tabs, access: 'page' }),
  ...pair('multi-tab', { tabs: { ...tabs, call: 'set', role: 'leader' }, access: 'inflight' }),
  ...(['concurrent', 'readwhilewriting'] as const).flatMap((suite) =>
    ['readers beside a writer', 'a writer beside readers'].flatMap((phase) =>
      pair(suite, { access: 'page', phase, note: 'open loop at 500/s' }),
    ),
  ),
  one('micro', { phase: 'get, memtable', note: '93 ns/op in memory' }),
  one('micro', { phase: 'put', note: '354 ns/op in memory' }),
  one('scale', { phase: 'iterate, 2000000 pairs' }),
  ...pair('a suite that is gone'),
];

test('every row of a run is shown once: in the table of its suite or in one of its own', () => {
  const special = specialTables(rows, []).flatMap(({ lines }) => lines.flatMap((line) => line.rows));
  const ordinary = groupsOf(ordinaryRows(rows)).flatMap((group) => group.rows);
  const shown = [...special, ...ordinary];
  expect(shown).toHaveLength(rows.length);
  expect(new Set(shown)).toEqual(new Set(rows));
});

test('the latency of every row stands once in the report', () => {
  const text = markdown(resultWith(rows), []);
  // A compaction is told by how long it took.
  const cells = rows.map((row) => duration(row.compaction === undefined ? row.p50 : row.seconds * 1e6));
  expect(new Set(cells).size).toBe(rows.length);
  const wrong = cells.filter((cell) => text.split(/ *\| */).filter((found) => found === cell).length !== 1);
  expect(wrong).toEqual([]);
  expect(text).toContain('open loop at 500/s');
});

test('rows of different calls, phases and ways in are never set beside one another', () => {
  for (const { suite, phase, access, rows: own } of casesOf(rows)) {
    for (const row of own) expect([row.suite, row.phase, row.access]).toEqual([suite, phase, access]);
  }
  expect(casesOf(rows).flatMap((found) => found.rows)).toHaveLength(rows.filter((row) => !row.tabs).length);
  const names = rows.map(fromBrowser).map((row) => `${groupName(row)} ${row.engine}`);
  expect(new Set(names).size).toBe(rows.length);
  expect(figuresOf({ rows }).lines).toHaveLength(rows.length);
});

test('the results page tells what a compaction did', () => {
  const [row] = rows.filter((found) => found.compaction !== undefined).map(fromBrowser);
  expect(row?.note).toBe('20 files of 1.00 MiB became 1 of 1 B; 900 entries, 1 after');
});

// A store that was only opened again has written nothing: 0 of 0, which JSON keeps as null, kept the results page from being made.
test('a session that wrote nothing has no write amplification', () => {
  const numbers = {
    suite: 'open',
    engine: 'varve-sync',
    entries: 1,
    logicalBytes: 116,
    diskBytes: 200,
    tablesPerLevel: [0, 1],
  };
  const rest = { compacted: true, diskBytesPerLogicalByte: 1.7, readAmplification: 2, walSegments: 0, memoryBytes: 1 };
  const report = { ...numbers, ...rest, writeAmplification: null, stats: {} };
  const items = Object.fromEntries(storageItems(JSON.parse(JSON.stringify(report))));
  expect(items['write amplification']).toBe('-');
});
