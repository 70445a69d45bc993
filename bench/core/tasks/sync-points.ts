/**
 * Single calls to a session that answers at once.
 *
 * Invariant: one loop per kind of call, with nothing in it but the call and the look-up of its arguments: a get also
 * touches the first byte of what it was given, so that a value that was not delivered could not go unnoticed.
 */

import type { SyncSession } from '../engine.ts';
import type { Dataset } from '../generator.ts';
import { ABSENT, DELETE, GET, type PointTrace, type State } from '../trace.ts';
import { type Task, TaskBase } from './task.ts';

export class SyncPoints extends TaskBase implements Task {
  readonly calls: number;
  readonly #session: SyncSession;
  readonly #trace: PointTrace;
  /** The call whose value is checked, and the value. */
  #picked = -1;
  #value: Uint8Array | undefined;
  #hits = 0;
  #touched = 0;

  constructor(session: SyncSession, dataset: Dataset, state: State, trace: PointTrace) {
    super(dataset, state);
    this.#session = session;
    this.#trace = trace;
    this.calls = trace.numbers.length;
  }

  run(from: number, to: number): void {
    switch (this.#trace.only) {
      case 'set':
        return this.#sets(from, to);
      case 'get':
        return this.#gets(from, to);
      case 'delete':
        return this.#deletes(from, to);
      default:
        return this.#mixed(from, to);
    }
  }

  finish(): void {
    this.#session.commit();
  }

  check(from: number, to: number): void {
    const { absent, numbers, values } = this.#trace;
    const { tally } = this;
    let reads = 0;
    for (let i = from; i < to; i++) {
      const number = numbers[i] as number;
      const value = values[i] as number;
      if (value === GET) {
        reads++;
        if (i === this.#picked) this.#checkPicked(number, absent);
      } else {
        this.state[number] = value === DELETE ? ABSENT : value;
      }
    }
    tally.ops += to - from;
    tally.reads += reads;
    tally.hits += this.#hits;
    tally.bytes +=
      (to - from) * this.dataset.keyBytes + (this.#hits + this.#writes(from, to)) * this.dataset.valueBytes;
    if (this.#touched < 0) tally.wrong++;
    this.#hits = 0;
    this.#picked = -1;
    this.#value = undefined;
  }

  #checkPicked(number: number, absent: boolean): void {
    if (!absent) this.expect(number, this.#value);
    else if (this.#value !== undefined) this.tally.wrong++;
  }

  #writes(from: number, to: number): number {
    const { only, values } = this.#trace;
    if (only !== undefined) return only === 'set' ? to - from : 0;
    let writes = 0;
    for (let i = from; i < to; i++) if ((values[i] as number) >= 0) writes++;
    return writes;
  }

  #sets(from: number, to: number): void {
    const session = this.#session;
    const { keys, numbers, values } = this.#trace;
    const { pool } = this.dataset;
    for (let i = from; i < to; i++) {
      session.set(keys[numbers[i] as number] as string, pool[values[i] as number] as Uint8Array);
    }
  }

  #gets(from: number, to: number): void {
    const session = this.#session;
    const { keys, numbers } = this.#trace;
    const picked = from + this.random.below(to - from);
    let hits = 0;
    let touched = 0;
    for (let i = from; i < to; i++) {
      const value = session.get(keys[numbers[i] as number] as string);
      if (value !== undefined) {
        hits++;
        touched += value[0] as number;
      }
      if (i === picked) this.#value = value;
    }
    this.#picked = picked;
    this.#hits += hits;
    this.#touched += touched;
  }

  #deletes(from: number, to: number): void {
    const session = this.#session;
    const { keys, numbers } = this.#trace;
    for (let i = from; i < to; i++) session.delete(keys[numbers[i] as number] as string);
  }

  #mixed(from: number, to: number): void {
    const session = this.#session;
    const { keys, numbers, values } = this.#trace;
    const { pool } = this.dataset;
    const picked = from + this.random.below(to - from);
    for (let i = from; i < to; i++) {
      const key = keys[numbers[i] as number] as string;
      const set = values[i] as number;
      if (set >= 0) {
        session.set(key, pool[set] as Uint8Array);
        continue;
      }
      const value = session.get(key);
      if (value !== undefined) {
        this.#hits++;
        this.#touched += value[0] as number;
      }
      if (i === picked) {
        this.#picked = picked;
        this.#value = value;
      }
    }
  }
}
