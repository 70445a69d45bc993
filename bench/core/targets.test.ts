import { expect, test } from 'vitest';
import { rowOf } from './fixture.ts';
import '../suites/documents/suite.ts';
import type { Row } from './row.ts';
import { judge, lostShare } from './targets.ts';

function row(suite: string, p99: number, hitRate: number): Row {
  return rowOf({ engine: 'varve-sync', role: 'varve', rounds: [1000], suite, p99, hitRate });
}

test('what a growing store loses is measured between the first and the last third of a round', () => {
  const steady = Array.from({ length: 10 }, (_, i) => [50 * (i + 1), 100] as const);
  expect(lostShare({ timeline: steady })).toBeCloseTo(0);
  const slowing = Array.from({ length: 10 }, (_, i) => [50 * (i + 1), i < 5 ? 100 : 50] as const);
  expect(lostShare({ timeline: slowing })).toBeCloseTo(0.5);
  expect(lostShare({ timeline: steady.slice(0, 3) })).toBeUndefined();
});

test('documents of many clients are judged from the page, in flight alone', () => {
  const documents = { suite: 'documents', engine: 'varve', p95: 600_000 } as const;
  const rows = [
    { ...row('documents', 1, 1), ...documents, access: 'page', opsPerSecond: 1 },
    { ...row('documents', 1, 1), ...documents, access: 'inflight', opsPerSecond: 5000 },
    { ...row('documents', 1, 1), ...documents, access: 'inflight', opsPerSecond: 90, p95: 1000 },
    { ...row('documents', 1, 1), ...documents, engine: 'dexie', access: 'inflight', opsPerSecond: 2 },
  ] as const;
  expect(judge(rows).map(({ cells, reached }) => [cells[3], cells[5], reached])).toEqual([
    ['600 ms', 'below 500 ms', false],
    ['90.0', 'above 100', false],
  ]);
});

test('a threshold is judged on its worst row, and stands among the targets', () => {
  const rows = [row('read-rand-mem', 20, 1), row('mixed-70', 1500, 0.99)];
  const thresholds = judge(rows).filter(({ cells }) => cells[0]?.includes('worst'));
  expect(thresholds.map(({ cells }) => cells)).toEqual([
    ['hit rate: worst, mixed-70', '1.00k ops/s', '-', '99.0%', '-', 'at least 99.9%', 'no'],
    ['p99 of single calls: worst, mixed-70', '1.00k ops/s', '-', '1.50 ms', '-', 'below 1.00 ms', 'no'],
  ]);
});
