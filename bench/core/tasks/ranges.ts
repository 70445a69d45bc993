/**
 * Ranges of a fixed number of entries from random keys, or one range over everything (a scan).
 *
 * Invariant: every entry is delivered, key and value, and counted; of each range the last entry is kept and compared
 * with what the state says about its key, and with the key that must stand at that place. Only in a store that holds
 * every key of the dataset, as the loaded fixtures do.
 */

import type { AsyncSession, Session, Sink } from '../engine.ts';
import { at, compareKeys, type Dataset, type Key, Random, salted } from '../generator.ts';
import type { State } from '../trace.ts';
import { type Task, TaskBase } from './task.ts';

/** Counts what a range delivers and keeps its last entry. */
export class LastEntry implements Sink {
  count = 0;
  touched = 0;
  key: Key = '';
  value: Uint8Array | undefined;

  take(key: Key, value: Uint8Array): void {
    this.count++;
    this.touched += value[0] as number;
    this.key = key;
    this.value = value;
  }
}

export interface RangeOptions {
  /** Entries of a range; more than there are: a scan. */
  readonly size: number;
  readonly calls: number;
  readonly round: number;
  readonly seed: number;
  readonly waves: boolean;
  /** A scan counts entries, not ranges. */
  readonly scan: boolean;
}

export class Ranges extends TaskBase implements Task {
  readonly calls: number;
  readonly #session: Session;
  readonly #options: RangeOptions;
  /** For each call: the place in key order of its first key. */
  readonly #places: Uint32Array;
  #sinks: LastEntry[] = [];

  constructor(session: Session, dataset: Dataset, state: State, options: RangeOptions) {
    super(dataset, state);
    this.#session = session;
    this.#options = options;
    this.calls = options.calls;
    const random = new Random(salted(0x7a9e + options.round, options.seed));
    const last = Math.max(0, dataset.keys.length - options.size);
    this.#places = Uint32Array.from({ length: options.calls }, () => random.below(last + 1));
  }

  run(from: number, to: number): void | Promise<void> {
    const session = this.#session;
    if (session.kind === 'async') return this.#await(session, from, to);
    for (let i = from; i < to; i++) session.range(this.#first(i), this.#options.size, this.#sink());
  }

  finish(): void {
    // Ranges only read.
  }

  check(from: number, to: number): void {
    const { size, scan } = this.#options;
    const { sorted, keys } = this.dataset;
    const { tally } = this;
    const expected = Math.min(size, keys.length);
    for (let i = from; i < to; i++) {
      const sink = at(this.#sinks, i - from);
      const number = at(sorted, at(this.#places, i) + expected - 1);
      if (sink.count !== expected || compareKeys(sink.key, at(keys, number)) !== 0) tally.wrong++;
      else this.expect(number, sink.value);
      tally.ops += scan ? sink.count : 1;
      tally.reads += expected;
      tally.hits += sink.count;
      tally.bytes += sink.count * this.entryBytes;
    }
    this.#sinks = [];
  }

  async #await(session: AsyncSession, from: number, to: number): Promise<void> {
    const { size, waves } = this.#options;
    if (!waves) {
      for (let i = from; i < to; i++) await session.range(this.#first(i), size, this.#sink());
      return;
    }
    const calls = Array.from({ length: to - from }, (_, i) => session.range(this.#first(from + i), size, this.#sink()));
    await Promise.all(calls);
  }

  #first(call: number): Key | undefined {
    if (this.#options.scan) return undefined;
    return this.dataset.keys[this.dataset.sorted[this.#places[call] as number] as number];
  }

  #sink(): LastEntry {
    const sink = new LastEntry();
    this.#sinks.push(sink);
    return sink;
  }
}
