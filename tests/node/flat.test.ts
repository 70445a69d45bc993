// The judge of the soak test can fail.

import { expect, test } from 'vitest';
import { growthOf, LAPS_MIN, type Lap } from '../support/flat.ts';

const LAPS = 40;

const laps = (lap: (n: number) => Lap): Lap[] => Array.from({ length: LAPS }, (_, n) => lap(n));
const counting = (name: string, count: (n: number) => number): string[] =>
  growthOf(laps((n) => ({ counts: { [name]: count(n) }, times: {} })));
const timing = (time: (n: number) => number): string[] =>
  growthOf(laps((n) => ({ counts: {}, times: { get: time(n) } })));

test('a count that comes and goes, grows in the first laps, or is disturbed for some laps is flat', () => {
  expect(counting('cursors', (n) => n % 3)).toEqual([]);
  expect(counting('heapBytes', (n) => 8e6 + Math.min(n, 8) * 1e6 + (n % 2) * 3e5)).toEqual([]);
  expect(counting('openFiles', (n) => (n > 35 ? 500 : 20))).toEqual([]);
  expect(timing((n) => (n % 3 === 0 ? 40 : 0.2 + (n % 4) / 10))).toEqual([]);
});

test('a count that grows from lap to lap is not flat', () => {
  expect(counting('cursors', (n) => n)).toEqual(['cursors of counts: from 15 to 35']);
  expect(counting('heapBytes', (n) => 8e6 + n * 1e5)).toHaveLength(1);
  expect(counting('wasmBytes', (n) => 4e6 + n * 65_536 * 4)).toHaveLength(1);
  expect(counting('processBytes', (n) => 1e8 + n * 1e7)).toHaveLength(1);
  expect(timing((n) => 0.1 + n / 10)).toEqual(['get of times: from 0.6 to 3.6']);
});

test('too few laps are refused', () => {
  const few = Array.from({ length: LAPS_MIN - 1 }, () => ({ counts: { cursors: 1 }, times: {} }));
  expect(() => growthOf(few)).toThrow('too few');
});
