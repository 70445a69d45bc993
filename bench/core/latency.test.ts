import { expect, test } from 'vitest';
import { median, percentilesOf } from './latency.ts';

test('percentiles are exact and follow the nearest rank', () => {
  const samples = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect(percentilesOf(samples)).toEqual({ p50: 50, p95: 95, p99: 99, max: 100 });
});

test('the median of an even list lies between its two middle figures', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([9, 1, 5])).toBe(5);
});
