import { expect, test } from 'vitest';
import { compareKeys, type KeyKind, makeDataset } from './generator.ts';

const KINDS: readonly KeyKind[] = ['sequential', 'random', 'tuple'];

test.each(KINDS)('%s keys are all different, and so are the absent ones', (kind) => {
  const { keys, absent } = makeDataset(kind, 2000, 8);
  expect(new Set([...keys, ...absent].map((key) => JSON.stringify(key))).size).toBe(4000);
});

test.each(KINDS)('%s keys are numbered in key order by `sorted`', (kind) => {
  const { keys, sorted } = makeDataset(kind, 500, 8);
  expect(Array.from(sorted, (number) => keys[number] ?? '')).toEqual([...keys].sort(compareKeys));
});

test('the same dataset is made every time', () => {
  expect(makeDataset('random', 50, 16)).toEqual(makeDataset('random', 50, 16));
});
