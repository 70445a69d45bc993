import { expect, test } from 'vitest';
import { Latencies } from '../core/latency.ts';
import { CHOICES } from '../core/workloads.ts';
import type { LifeStory } from '../suites/lives/life.ts';
import { familiesOf } from './families.ts';
import { latencyCurve, shareText } from './latency-curve.ts';
import { sortable } from './ordering.ts';
import { LiveThroughput, lifePoints, timelineOf } from './throughput.ts';

test('a curve of latencies passes through their percentiles and ends with the last call', () => {
  const latencies = new Latencies();
  for (let i = 1; i <= 1000; i++) latencies.add(i);
  const points = latencyCurve({ histogram: latencies.histogram() });
  const at = (x: number): number => points.find((point) => Math.abs(point.x - x) < 1e-6)?.y ?? Number.NaN;
  expect(at(10)).toBeGreaterThan(895);
  expect(at(10)).toBeLessThan(905);
  expect(at(100)).toBeGreaterThan(985);
  expect(points.at(-1)?.x).toBe(1000);
  expect(points.map(({ y }) => y)).toEqual([...points.map(({ y }) => y)].sort((a, b) => a - b));
  expect(latencyCurve({ histogram: '' })).toEqual([]);
});

test('places of that axis are named by their share', () => {
  expect([1, 10, 100, 1000, 10_000].map(shareText)).toEqual(['0%', '90%', '99%', '99.9%', '99.99%']);
});

test('rounds follow one another in measured time, and another suite begins anew', () => {
  const live = new LiveThroughput();
  const sample = { type: 'sample', suite: 'a', engine: 'x', access: 'worker', ops: 10 } as const;
  live.take({ ...sample, round: 0, at_ms: 50 });
  live.take({ ...sample, round: 0, at_ms: 100 });
  live.take({ ...sample, round: 1, at_ms: 50 });
  expect(live.lines()[0]?.points).toEqual([
    { x: 0.05, y: 200 },
    { x: 0.1, y: 200 },
    { x: 0.15, y: 200 },
  ]);
  live.take({ ...sample, suite: 'b', round: 0, at_ms: 50 });
  expect(live.lines()[0]?.points).toHaveLength(1);
  expect(live.suite).toBe('b (worker)');
  expect(
    timelineOf({
      timeline: [
        [100, 50],
        [200, 100],
      ],
    }),
  ).toEqual([
    { x: 0.1, y: 500 },
    { x: 0.2, y: 1000 },
  ]);
});

test('every suite that can be chosen is in one family', () => {
  const found = familiesOf(CHOICES).flatMap(({ choices }) => choices);
  expect(new Set(found)).toEqual(new Set(CHOICES));
  expect(found).toHaveLength(CHOICES.length);
});

test('formatted figures are sorted by their size', () => {
  expect(['1.50M', '313k ops/s', '0.30x', '42.0 us', '1.31 ms', '-', 'varve'].map(sortable)).toEqual([
    1_500_000,
    313_000,
    0.3,
    42,
    1310,
    undefined,
    'varve',
  ]);
});

test('a life is drawn over its steps, without the figures that nobody told', () => {
  const life: LifeStory = {
    ...{ planned: 40, livingBytes: 5 },
    samples: [
      { steps: 10, at_ms: 1, stepsPerSecond: 7, p99: 3, disk: { files: 1, bytes: 100 } },
      { steps: 20, at_ms: 2, stepsPerSecond: 8, p99: 4 },
    ],
  };
  const rates = [
    { x: 10, y: 7 },
    { x: 20, y: 8 },
  ];
  expect(lifePoints({ life }, ({ stepsPerSecond }) => stepsPerSecond)).toEqual(rates);
  expect(lifePoints({ life }, ({ disk }) => disk?.bytes)).toEqual([{ x: 10, y: 100 }]);
  expect(lifePoints({ life }, ({ memoryBytes }) => memoryBytes)).toEqual([]);
  expect(lifePoints({}, ({ p99 }) => p99)).toEqual([]);
});
