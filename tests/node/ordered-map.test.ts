/** The sorted map behind a transaction's own writes, compared with a plain map. */

import { describe, expect, test } from 'vitest';
import { OrderedMap } from '../../js/src/transaction/ordered-map.ts';
import { Random } from './support/random.ts';

const bytes = (...content: number[]): Uint8Array => Uint8Array.from(content);
const word = (n: number): Uint8Array => bytes(n >> 16, (n >> 8) & 255, n & 255);

function listed(map: OrderedMap<number>, start = bytes(), end?: Uint8Array, reverse = false): number[] {
  return Array.from(map.entries(start, end, reverse), ([, item]) => item);
}

const KEYS = 3000;

function within(model: Map<number, number>, start = 0, end = KEYS): number[] {
  const found = [...model].filter(([key]) => key >= start && key < end);
  return found.sort(([a], [b]) => a - b).map(([, item]) => item);
}

function deleteBoth(map: OrderedMap<number>, model: Map<number, number>, start: number, end: number): void {
  map.deleteRange(word(start), end > KEYS ? undefined : word(end));
  for (const key of [...model.keys()]) if (key >= start && key < end) model.delete(key);
}

describe('an ordered map', () => {
  test('answers like a plain one, whatever is set, deleted and copied', () => {
    const random = new Random(7);
    let map = new OrderedMap<number>();
    const model = new Map<number, number>();
    const copies: { copy: OrderedMap<number>; expected: number[] }[] = [];
    for (let step = 0; step < 20_000; step++) {
      const key = random.below(KEYS);
      const kind = random.below(2000);
      if (kind === 0) deleteBoth(map, model, key, key + random.below(KEYS / 2));
      else if (kind < 3) {
        copies.push({ copy: map, expected: within(model) });
        map = map.copy();
      } else {
        map.set(word(key), step);
        model.set(key, step);
      }
      expect(map.get(word(key))).toBe(model.get(key));
    }
    expect(listed(map)).toStrictEqual(within(model));
    expect(listed(map, bytes(), undefined, true)).toStrictEqual(within(model).reverse());
    for (const { copy, expected } of copies) expect(listed(copy)).toStrictEqual(expected);
    const ranges = [
      [100, 900],
      [0, 1],
      [2999, 4000],
      [900, 100],
    ] as const;
    for (const [start, end] of ranges) {
      expect(listed(map, word(start), word(end))).toStrictEqual(within(model, start, end));
      expect(listed(map, word(start), word(end), true)).toStrictEqual(within(model, start, end).reverse());
    }
  });

  test('is empty at first, and after everything was deleted', () => {
    const map = new OrderedMap<number>();
    expect([listed(map), listed(map, bytes(), undefined, true), map.get(bytes(1))]).toStrictEqual([[], [], undefined]);
    for (let n = 0; n < 1000; n++) map.set(word(n), n);
    map.deleteRange(bytes(), undefined);
    map.deleteRange(bytes(1), bytes(2));
    expect([listed(map), listed(map, bytes(), undefined, true)]).toStrictEqual([[], []]);
    map.set(word(5), 5);
    expect(listed(map)).toStrictEqual([5]);
  });
});
