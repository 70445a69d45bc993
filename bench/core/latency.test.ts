import { expect, test } from 'vitest';
import { Latencies, median } from './latency.ts';

test('percentiles are exact and follow the nearest rank', () => {
  const latencies = new Latencies(4);
  for (let i = 100; i >= 1; i--) latencies.add(i);
  expect(latencies.percentiles()).toEqual({ p50: 50, p95: 95, p99: 99, max: 100 });
});

test('joined lists give the percentiles of all their samples', () => {
  const low = new Latencies(1);
  const high = new Latencies(1);
  for (let i = 1; i <= 50; i++) low.add(i);
  for (let i = 51; i <= 100; i++) high.add(i);
  low.addAll(high);
  expect(low.percentiles()).toEqual({ p50: 50, p95: 95, p99: 99, max: 100 });
});

test('the median of an even list lies between its two middle figures', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([9, 1, 5])).toBe(5);
});
