import { expect, test } from 'vitest';
import { makeDataset } from './generator.ts';
import { argumentOf, batchTraces, GET, isGet, isScan, pointTrace, scatteredTraces } from './trace.ts';
import type { Work } from './work.ts';

const dataset = makeDataset('random', 1200, 32);
const points = (mix: (Work & { kind: 'points' })['mix'], order: (Work & { kind: 'points' })['order']) =>
  ({ kind: 'points', mix, order }) as const;

test('a trace follows from its seed and its round', () => {
  const work = points({ reads: 0.5 }, 'zipfian');
  const of = (seed: number, round: number) => pointTrace(dataset, work, { calls: 300, round, seed });
  expect(of(1, 0)).toEqual(of(1, 0));
  expect(of(1, 0).numbers).not.toEqual(of(1, 1).numbers);
  expect(of(1, 0).numbers).not.toEqual(of(2, 0).numbers);
  const choice = { calls: 3, round: 1, seed: 9 };
  expect(batchTraces(dataset, 10, choice)).toEqual(batchTraces(dataset, 10, choice));
  expect(scatteredTraces(dataset, 10, choice)).toEqual(scatteredTraces(dataset, 10, choice));
});

test('another seed makes other keys and other values, of the size that is asked for', () => {
  const other = makeDataset('random', 50, 32, { seed: 2, keyBytes: 40 });
  expect(other.keys[0]).toHaveLength(40);
  expect(new Set(other.keys).size).toBe(50);
  expect(other.keys[0]?.slice(0, 16)).not.toBe(dataset.keys[0]);
  expect(other.pool[0]).not.toEqual(dataset.pool[0]);
});

test('writes touch every key once before any twice', () => {
  const { numbers } = pointTrace(dataset, points('set', 'uniform'), { calls: 1200, round: 0 });
  expect(new Set(numbers).size).toBe(1200);
});

test('inserts come behind the keys that are there, in order, and reads stay before them', () => {
  const work = points({ reads: 0.95, inserts: 0.05 }, 'latest');
  const { numbers, values } = pointTrace(dataset, work, { calls: 2000, round: 0, there: 1000 });
  const inserts = [...numbers].filter((_, i) => values[i] !== GET);
  expect(inserts.length).toBeGreaterThan(50);
  expect(inserts).toEqual(inserts.map((_, i) => 1000 + i));
  let there = 1000;
  numbers.forEach((number, i) => {
    if (values[i] === GET) expect(number).toBeLessThan(there);
    else there++;
  });
});

test('a mix of kinds keeps its shares, and its ranges their lengths', () => {
  const work = points({ inserts: 0.05, scans: 0.55, size: 100, modifies: 0.2, reads: 0.2 }, 'uniform');
  const { values } = pointTrace(dataset, work, { calls: 3000, round: 0, there: 1000 });
  const share = (of: (call: number) => boolean): number => values.filter(of).length / 3000;
  expect(share(isScan)).toBeCloseTo(0.55, 1);
  expect(share((call) => isGet(call) && call !== GET)).toBeCloseTo(0.2, 1);
  expect(share((call) => call === GET)).toBeCloseTo(0.2, 1);
  const lengths = [...values.filter(isScan)].map(argumentOf);
  expect(Math.min(...lengths)).toBe(1);
  expect(Math.max(...lengths)).toBe(100);
});
