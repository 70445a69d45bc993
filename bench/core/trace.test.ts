import { expect, test } from 'vitest';
import { makeDataset } from './generator.ts';
import { batchTraces, GET, mixTrace, pointTrace, SCAN, scatteredTraces } from './trace.ts';
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
  const mix = {
    kind: 'mix',
    shares: { inserts: 0.05, scans: 0.95, modifies: 0 },
    order: 'zipfian',
    size: 100,
  } as const;
  expect(mixTrace(dataset, mix, { calls: 50, round: 0 })).toEqual(mixTrace(dataset, mix, { calls: 50, round: 0 }));
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
  const work = {
    kind: 'mix',
    shares: { inserts: 0.05, scans: 0.55, modifies: 0.2 },
    order: 'uniform',
    size: 100,
  } as const;
  const { values, sizes, modifies } = mixTrace(dataset, work, { calls: 3000, round: 0, there: 1000 });
  const share = (of: (i: number) => boolean): number => [...values].filter((_, i) => of(i)).length / 3000;
  expect(share((i) => values[i] === SCAN)).toBeCloseTo(0.55, 1);
  expect(share((i) => modifies[i] === 1)).toBeCloseTo(0.2, 1);
  expect(share((i) => values[i] === GET)).toBeCloseTo(0.2, 1);
  const lengths = [...sizes].filter((size) => size > 0);
  expect(Math.min(...lengths)).toBe(1);
  expect(Math.max(...lengths)).toBe(100);
});
