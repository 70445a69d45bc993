import { expect, test } from 'vitest';
import { Random } from './generator.ts';
import { emptyHistogram, Latencies, median, readHistogram, UNITS_PER_US } from './latency.ts';

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

test('the histogram of a row gives the percentiles again, to three digits', () => {
  const random = new Random(7);
  const latencies = new Latencies();
  // From 0.1 us to 100 ms, evenly on a logarithmic axis.
  for (let i = 0; i < 20_000; i++) latencies.add(10 ** ((random.next() / 0x1_0000_0000) * 6 - 1));
  const histogram = readHistogram(latencies.histogram());
  expect(histogram.totalCount).toBe(20_000);
  const exact = latencies.percentiles();
  for (const [percentile, expected] of [
    [50, exact.p50],
    [95, exact.p95],
    [99, exact.p99],
    [100, exact.max],
  ] as const) {
    const told = histogram.getValueAtPercentile(percentile) / UNITS_PER_US;
    expect(Math.abs(told - expected) / expected).toBeLessThan(0.002);
  }
});

test('histograms of two rows can be joined', () => {
  const [a, b] = [new Latencies(), new Latencies()];
  for (let i = 1; i <= 100; i++) (i % 2 === 0 ? a : b).add(i);
  const joined = emptyHistogram();
  for (const latencies of [a, b]) joined.add(readHistogram(latencies.histogram()));
  expect(joined.totalCount).toBe(100);
  expect(joined.getValueAtPercentile(50) / UNITS_PER_US).toBeCloseTo(50, 0);
});
