/**
 * What a store of the comparison must hold, and the keys and values that it is given.
 *
 * Invariant: every value comes from a fixed pool by a number that is remembered per key, so that nothing is generated while a
 * clock runs, and what a store gives can be compared to the byte.
 */

import { at, type Dataset, makeDataset, Random, sameBytes } from '../../core/generator.ts';
import type { FileStore, Pair } from './engine.ts';

const VALUE_BYTES = 100;
const ABSENT = -1;
const SEED = 20_261;

/** The state of one store. */
export class Model {
  readonly entries: number;
  readonly random = new Random(SEED);
  readonly #data: Dataset;
  /** By key number: the number of its value, or absent. */
  readonly #values: Int32Array;
  /** By key number: its place in key order. */
  readonly #places: Uint32Array;

  /** Of an empty store that is to have up to `entries` keys, numbered in key order or in no order. */
  constructor(entries: number, order: 'sequential' | 'random') {
    this.entries = entries;
    this.#data = makeDataset(order, entries, VALUE_BYTES);
    this.#values = new Int32Array(entries).fill(ABSENT);
    this.#places = new Uint32Array(entries);
    for (const [place, number] of this.#data.sorted.entries()) this.#places[number] = place;
  }

  key(number: number): string {
    return at(this.#data.keys, number) as string;
  }

  /** A new value for a key, noted. */
  set(number: number): Pair {
    const value = this.random.below(this.#data.pool.length);
    this.#values[number] = value;
    return [this.key(number), at(this.#data.pool, value)];
  }

  delete(number: number): string {
    this.#values[number] = ABSENT;
    return this.key(number);
  }

  any(): number {
    return this.random.below(this.entries);
  }

  has(number: number): boolean {
    return this.#values[number] !== ABSENT;
  }

  /** Whether a value is to the byte what a key must have (undefined: nothing). */
  isRight(number: number, value: Uint8Array | undefined): boolean {
    const expected = at(this.#values, number);
    if (value === undefined || expected === ABSENT) return value === undefined && expected === ABSENT;
    return sameBytes(value, at(this.#data.pool, expected));
  }

  /** Whether these are the entries from a key on, in order; the last one's value is compared. Of a store that has all keys. */
  isRange(from: number, pairs: readonly Pair[], limit: number): boolean {
    const place = at(this.#places, from);
    if (pairs.length !== Math.min(limit, this.entries - place)) return false;
    const last = at(this.#data.sorted, place + pairs.length - 1);
    const [key, value] = at(pairs, pairs.length - 1);
    return key === this.key(last) && this.isRight(last, value);
  }

  /** Walks the whole store; what is wrong in words, or undefined. */
  async compare(store: FileStore): Promise<string | undefined> {
    const expected = [...this.#data.sorted].filter((number) => this.has(number));
    let count = 0;
    for await (const [key, value] of store.all()) {
      const number = expected[count++];
      if (number === undefined) return `It holds ${key}, which it must not.`;
      if (key !== this.key(number)) return `It gives ${key} where ${this.key(number)} must come.`;
      if (!this.isRight(number, value)) return `It holds another value of ${key} than was written.`;
    }
    return count === expected.length ? undefined : `It holds ${count} of ${expected.length} keys.`;
  }
}
