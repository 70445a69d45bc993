/**
 * Gets, inserts, ranges and gets that are followed by a set of the key, one after another (YCSB E and F).
 *
 * Invariant: calls are made in the order of the trace and each is done before the next, so the checks can go through the
 * group once more and know what every call had to find: all ranges to the last key, one value of each group to the byte.
 */

import type { AsyncSession, Session, SyncSession } from '../engine.ts';
import { at, compareKeys, type Dataset, type Key } from '../generator.ts';
import { ABSENT, GET, type MixTrace, SCAN, type State } from '../trace.ts';
import { LastEntry } from './ranges.ts';
import { type Task, TaskBase } from './task.ts';

export class Mixes extends TaskBase implements Task {
  readonly calls: number;
  readonly #session: Session;
  readonly #trace: MixTrace;
  /** Of the calls of a group: what the get delivered, or the sink of the range. */
  #found: (Uint8Array | undefined | LastEntry)[] = [];
  /** Each key's place in key order; made for ranges alone. */
  readonly #places: Uint32Array;

  constructor(session: Session, dataset: Dataset, state: State, trace: MixTrace) {
    super(dataset, state);
    this.#session = session;
    this.#trace = trace;
    this.calls = trace.numbers.length;
    this.#places = new Uint32Array(dataset.keys.length);
    dataset.sorted.forEach((number, place) => {
      this.#places[number] = place;
    });
  }

  run(from: number, to: number): void | Promise<void> {
    const session = this.#session;
    return session.kind === 'async' ? this.#await(session, from, to) : this.#now(session, from, to);
  }

  finish(): void {
    if (this.#session.kind === 'sync') this.#session.commit();
  }

  check(from: number, to: number): void {
    const { numbers, values, sizes, modifies } = this.#trace;
    const picked = from + this.random.below(to - from);
    const { tally } = this;
    for (let i = from; i < to; i++) {
      const number = at(numbers, i);
      const value = at(values, i);
      const found = this.#found[i - from];
      if (found instanceof LastEntry) this.#checkRange(number, at(sizes, i), found);
      else if (value === GET || modifies[i] === 1) {
        tally.reads++;
        if (found !== undefined) tally.hits++;
        tally.bytes += this.entryBytes;
        if (i === picked) this.expect(number, found);
      }
      if (value >= 0) {
        this.state[number] = value;
        tally.bytes += this.entryBytes;
      }
      tally.ops++;
    }
    this.#found = [];
  }

  /** A range begins at its key and delivers what is there behind it, up to its size. */
  #checkRange(number: number, size: number, found: LastEntry): void {
    const { sorted, keys } = this.dataset;
    let count = 0;
    let last = number;
    for (let place = at(this.#places, number); place < sorted.length && count < size; place++) {
      const next = at(sorted, place);
      if (this.state[next] === ABSENT) continue;
      count++;
      last = next;
    }
    this.tally.reads += count;
    this.tally.hits += found.count;
    this.tally.bytes += found.count * this.entryBytes;
    if (found.count !== count || compareKeys(found.key, at(keys, last)) !== 0) this.tally.wrong++;
    else this.expect(last, found.value);
  }

  #now(session: SyncSession, from: number, to: number): void {
    const { numbers, values, sizes, modifies } = this.#trace;
    const { keys, pool } = this.dataset;
    for (let i = from; i < to; i++) {
      const key = keys[numbers[i] as number] as Key;
      const value = values[i] as number;
      if (value === SCAN) session.range(key, sizes[i] as number, this.#sink(i - from));
      else {
        if (value === GET || modifies[i] === 1) this.#found[i - from] = session.get(key);
        if (value >= 0) session.set(key, pool[value] as Uint8Array);
      }
    }
  }

  async #await(session: AsyncSession, from: number, to: number): Promise<void> {
    const { numbers, values, sizes, modifies } = this.#trace;
    const { keys, pool } = this.dataset;
    for (let i = from; i < to; i++) {
      const key = keys[numbers[i] as number] as Key;
      const value = values[i] as number;
      if (value === SCAN) await session.range(key, sizes[i] as number, this.#sink(i - from));
      else {
        if (value === GET || modifies[i] === 1) this.#found[i - from] = await session.get(key);
        if (value >= 0) await session.set(key, pool[value] as Uint8Array);
      }
    }
  }

  #sink(place: number): LastEntry {
    const sink = new LastEntry();
    this.#found[place] = sink;
    return sink;
  }
}
