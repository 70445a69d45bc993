import { expect, test } from 'vitest';
import '../suites/browser.ts';
import { duration } from './figures.ts';
import { rowOf } from './fixture.ts';
import { markdown } from './result.ts';
import type { Row } from './row.ts';
import { suites } from './suite.ts';
import { markdownTable, storageTable, suiteTables } from './tables.ts';

let count = 0;

function one(suite: string, more: Partial<Row> = {}): Row {
  const p50 = 101 + count++;
  const latency = { p50, p95: 1e4, p99: 2e4, max: 3e4 };
  return rowOf({ engine: 'varve-sync', role: 'varve', rounds: [1e6 / p50], suite, ...latency, ...more });
}

const pair = (suite: string, more: Partial<Row> = {}): Row[] => [
  one(suite, more),
  one(suite, { engine: 'dexie', role: 'peer', ...more }),
];

/** Rows of every suite that there is, of those with phases and accesses as they make them, and of one that is gone. */
const rows: readonly Row[] = [
  ...suites().flatMap(({ name }) => pair(name)),
  ...(['page', 'inflight'] as const).flatMap((access) => pair('main-vs-worker', { access })),
  one('compaction', { phase: 'reads, before' }),
  one('compaction', { phase: 'reads, after', note: '20 files became 1' }),
  ...pair('documents', { phase: 'get by key', access: 'page' }),
  ...pair('documents', { phase: 'get by key', access: 'inflight' }),
  ...pair('multi-tab', { phase: '2 tabs, get, all call', access: 'page' }),
  ...pair('a suite that is gone'),
];

test('every row of a run is shown once, and its latency stands once in the report', () => {
  expect(suiteTables(rows).flatMap(({ lines }) => lines)).toHaveLength(rows.length);
  const text = markdown({ rows, storage: [], notes: ['a note'], problems: ['a problem'] }, [], 'here');
  const cells = text.split(/ *\| */);
  const wrong = rows.filter(({ p50 }) => cells.filter((cell) => cell === duration(p50)).length !== 1);
  expect(wrong).toEqual([]);
  for (const part of ['20 files became 1', 'a note', 'a problem', 'here']) expect(text).toContain(part);
});

test('a life is drawn over time: bars from zero to the largest, each the median of neighbours', () => {
  const samples = Array.from({ length: 50 }, (_, i) => ({ steps: i, at_ms: i, stepsPerSecond: 98 - 2 * i, p99: 5 }));
  const [table] = suiteTables([one('queue', { life: { planned: 3, samples, livingBytes: 1 } })]);
  const drawn = ['████▇▇▇▆▆▆▆▅▅▅▄▄▄▄▃▃▃▂▂▂▂ to 97.0', `${'█'.repeat(25)} to 5.00 us`];
  expect(table?.lines[0]?.cells).toEqual(expect.arrayContaining(drawn));
});

test('a table lines up, and no cell can end it early', () => {
  const lines = [{ cells: ['a|b', '1'] }, { cells: ['c\nd', '23'] }];
  expect(markdownTable({ columns: ['case', 'a second'], lines }).split('\n')).toEqual([
    '| case | a second |',
    '| ---- | -------: |',
    '| a\\|b |        1 |',
    '| c d  |       23 |',
  ]);
});

// A store that was only opened again has written nothing: 0 of 0, which JSON keeps as null, kept the results page from being made.
test('a session that wrote nothing has no write amplification', () => {
  const report = {
    ...{ suite: 'open', engine: 'varve-sync', entries: 1, logicalBytes: 116, diskBytes: 200, tablesPerLevel: [0, 1] },
    ...{ compacted: true, diskBytesPerLogicalByte: 1.7, readAmplification: 2, walSegments: 0, memoryBytes: 1 },
    writeAmplification: null,
  };
  expect(storageTable([report]).lines[0]?.cells[5]).toBe('-');
});
