import { expect, test } from 'vitest';
import { rowOf } from './fixture.ts';
import '../suites/documents/suite.ts';
import { lostShare } from './measure.ts';
import type { Row } from './row.ts';
import { judge } from './targets.ts';

function row(suite: string, p99: number, hitRate: number): Row {
  return rowOf({ engine: 'varve-sync', role: 'varve', rounds: [1000], suite, p99, hitRate });
}

test('the loss of a growing store is measured between the first and the last third of a round', () => {
  const steady = Array.from({ length: 30 }, (_, i) => i + 1);
  expect(lostShare(steady)).toBeCloseTo(0);
  expect(lostShare(steady.map((end) => (end <= 15 ? end : 2 * end - 15)))).toBeCloseTo(0.5);
  expect(lostShare(steady.slice(0, 29))).toBeUndefined();
});

test('documents of many clients are judged from the page, in flight alone', () => {
  const documents = { suite: 'documents', engine: 'varve', p95: 600_000 } as const;
  const rows = [
    { ...row('documents', 1, 1), ...documents, access: 'page', opsPerSecond: 1 },
    { ...row('documents', 1, 1), ...documents, access: 'inflight', opsPerSecond: 5000 },
    { ...row('documents', 1, 1), ...documents, access: 'inflight', opsPerSecond: 90, p95: 1000 },
    { ...row('documents', 1, 1), ...documents, engine: 'dexie', role: 'peer', access: 'inflight', opsPerSecond: 2 },
  ] as const;
  expect(judge(rows).map(({ cells, reached }) => [cells[3], cells[5], reached])).toEqual([
    ['600 ms', 'at most 500 ms', false],
    ['90.0', 'at least 100', false],
  ]);
});

test('a threshold is judged on its worst row, and stands among the targets', () => {
  const rows = [row('read-rand-mem', 20, 1), row('mixed-70', 1500, 0.99)];
  const thresholds = judge(rows).filter(({ cells }) => cells[0]?.includes('worst'));
  expect(thresholds.map(({ cells }) => cells.filter((cell) => cell !== '-' && cell !== '1.00k ops/s'))).toEqual([
    ['hit rate: worst, mixed-70 (in the worker) varve-sync', '99.0%', 'at least 99.9%', 'no'],
    ['p99 of single calls: worst, mixed-70 (in the worker) varve-sync', '1.50 ms', 'at most 1.00 ms', 'no'],
  ]);
});
