// The checker of histories: what it accepts and what it refuses.

import { expect, test } from 'vitest';
import { type Call, isLinearizable } from './support/linearizable.ts';
import { Random } from './support/random.ts';

type State = number;

const write = (client: number, start: number, end: number, value: number): Call<State> => ({
  client,
  start,
  end,
  keys: ['x'],
  isWrite: true,
  apply: () => value,
});
const read = (client: number, start: number, end: number, value: number): Call<State> => ({
  client,
  start,
  end,
  keys: ['x'],
  isWrite: false,
  apply: (state) => (state === value ? state : undefined),
});
const accepts = (...history: Call<State>[]): boolean => isLinearizable(history, 0, String);
const NEVER = Number.POSITIVE_INFINITY;

test('calls one after another are answered by what was written before', () => {
  expect(accepts(write(1, 0, 1, 5), read(2, 2, 3, 5))).toBe(true);
  expect(accepts(write(1, 0, 1, 5), read(2, 2, 3, 0))).toBe(false);
  expect(accepts(read(2, 0, 1, 5), write(1, 2, 3, 5))).toBe(false);
});

test('a read during a write may see it or not, but nobody sees the old value after somebody has seen the new one', () => {
  const during = write(1, 0, 9, 5);
  expect(accepts(during, read(2, 1, 2, 0), read(3, 3, 4, 5))).toBe(true);
  expect(accepts(during, read(2, 1, 2, 5), read(3, 3, 4, 0))).toBe(false);
  expect(accepts(during, read(2, 1, 4, 5), read(3, 2, 3, 0))).toBe(true);
});

test('a write that never ended may be seen at any time, or never', () => {
  const lost = write(1, 0, NEVER, 5);
  expect(accepts(lost, read(2, 1, 2, 0), read(2, 3, 4, 0))).toBe(true);
  expect(accepts(lost, read(2, 1, 2, 0), read(2, 3, 4, 5))).toBe(true);
  expect(accepts(lost, read(2, 1, 2, 5), read(2, 3, 4, 0))).toBe(false);
});

test('the writes of one client, and its reads of the same key, are done in the order of the calls', () => {
  expect(accepts(write(1, 0, 9, 5), read(1, 1, 8, 0))).toBe(false);
  expect(accepts(write(1, 0, 9, 5), read(1, 1, 8, 5))).toBe(true);
  expect(accepts(read(1, 0, 9, 5), write(1, 1, 8, 5))).toBe(false);
});

test('a store that does one call at a time is accepted, whatever overlaps, and one wrong answer is refused', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed);
    const calls: Call<State>[] = [];
    let [now, state] = [0, 0];
    for (let i = 1; i <= 30; i++) {
      // Done at a point between its start and its end, which overlaps with those of other clients.
      now += 10;
      const [start, end] = [now - random.below(15) - i / 100, now + random.below(15) + i / 100];
      const isWrite = random.below(2) === 0;
      if (isWrite) state = i;
      calls.push((isWrite ? write : read)(i, start, end, state));
    }
    expect(accepts(...calls), `seed ${seed}`).toBe(true);
    expect(accepts(...calls, read(0, now + 100, now + 101, -1)), `seed ${seed}`).toBe(false);
  }
});
