// The work of the compaction test, and the model that judges it: some thousand keys, overwritten and deleted at random.

import type { StoreStats } from 'varve';
import { type Random, randomFrom } from '../../support/random.ts';

const KEYS = 8000;
const BATCH_MAX = 200;
/** Writes of one part; the whole is four. */
const PART = 15_000;
const TEXT_LENGTH = 1 << 16;
export const PARTS = 4;

/** One write: no value deletes. */
export interface Write {
  readonly key: number;
  readonly value: string | undefined;
}

/** The findings of a run. */
export interface Churned {
  /** Every difference from the model. */
  readonly problems: readonly string[];
  /** Size of the values that exist at the end, in bytes. */
  readonly liveBytes: number;
  /** Size of the store on disk after each part. */
  readonly diskBytes: readonly number[];
  /** The largest number of tables seen in level 0. */
  readonly level0Max: number;
  /** Before the store was closed. */
  readonly stats: StoreStats;
  /** After everything was merged. */
  readonly merged: StoreStats;
  readonly state: string;
}

declare global {
  /** Runs all of it, in a page or a worker. */
  var churn: (name: string, seed: number) => Promise<Churned>;
}

/** A map that generates its own writes. */
export class Churn {
  readonly #random: Random;
  /** Noise that values are cut from, so that they do not compress away. */
  readonly #text: string;
  readonly #model = new Map<number, string>();
  #writes = 0;
  readonly problems: string[] = [];

  constructor(seed: number) {
    this.#random = randomFrom(seed);
    this.#text = Array.from({ length: TEXT_LENGTH }, () => String.fromCharCode(33 + this.#random(94))).join('');
  }

  /** The batches of the next part. The model already includes them. */
  *part(): Generator<Write[]> {
    for (const end = this.#writes + PART; this.#writes < end; ) {
      yield Array.from({ length: 1 + this.#random(BATCH_MAX) }, () => this.#write());
    }
  }

  /** The entries that a store must have now, in order. */
  entries(): [number, string][] {
    return [...this.#model].sort(([a], [b]) => a - b);
  }

  get liveBytes(): number {
    return this.entries().reduce((sum, [, value]) => sum + value.length + 16, 0);
  }

  /** Notes the differences between the found and the expected entries. */
  compare(when: string, found: readonly (readonly [number, string])[], expected = this.entries()): void {
    if (found.length !== expected.length) this.#note(`${when}: ${found.length} entries, not ${expected.length}`);
    found.forEach(([key, value], i) => {
      const [expectedKey, expectedValue] = expected[i] ?? [];
      if (key !== expectedKey || value !== expectedValue) this.#note(`${when}: key ${key} at ${i}`);
    });
  }

  /** The same for single reads of all possible keys. */
  compareGets(values: readonly (string | undefined)[]): void {
    values.forEach((value, key) => {
      if (value !== this.#model.get(key)) this.#note(`get ${key}`);
    });
  }

  /** All possible keys. */
  keys(): number[] {
    return Array.from({ length: KEYS }, (_, key) => key);
  }

  #write(): Write {
    const key = this.#random(KEYS);
    const number = this.#writes++;
    if (this.#random(10) === 0) {
      this.#model.delete(key);
      return { key, value: undefined };
    }
    const start = this.#random(TEXT_LENGTH - 500);
    const value = `write ${number} ${this.#text.slice(start, start + 150 + this.#random(250))}`;
    this.#model.set(key, value);
    return { key, value };
  }

  #note(problem: string): void {
    if (this.problems.length < 10) this.problems.push(problem);
  }
}
