/**
 * A task is the calls of one round, made group by group against one session.
 *
 * Invariant: `run` and `finish` are all that is timed; `check` is not. Of every group of reads one value, drawn at
 * random, is compared byte by byte with what was written; counts are compared for all. The whole store is verified
 * after the round (verify.ts).
 */

import type { BatchEntries } from '../engine.ts';
import { at, type Dataset, Random, sameBytes } from '../generator.ts';
import { ABSENT, type BatchTrace, type State } from '../trace.ts';

/** What the calls of a task amounted to. */
export interface Tally {
  /** Operations as the suite counts them: calls, entries of batches and scans, or ranges. */
  ops: number;
  /** Bytes of keys and values that were written or delivered. */
  bytes: number;
  /** Keys that were asked for, and how many of them there were. */
  reads: number;
  hits: number;
  /** Checks that failed. */
  wrong: number;
}

export interface Task {
  readonly calls: number;
  readonly tally: Tally;
  /** Makes the calls from `from` to `to`. */
  run(from: number, to: number): void | Promise<void>;
  /** Resolves when all that was written has reached its level. */
  finish(): void | Promise<void>;
  /** Counts and checks the calls from `from` to `to`, and brings the state up to date. */
  check(from: number, to: number): void | Promise<void>;
}

/** What every task has: the dataset, the state and the tally. */
export abstract class TaskBase {
  readonly tally: Tally = { ops: 0, bytes: 0, reads: 0, hits: 0, wrong: 0 };
  protected readonly dataset: Dataset;
  protected readonly state: State;
  protected readonly random = new Random(0x5a3b1e);

  constructor(dataset: Dataset, state: State) {
    this.dataset = dataset;
    this.state = state;
  }

  /** Counts a failed check unless `value` is what key `number` must hold. */
  protected expect(number: number, value: Uint8Array | undefined): void {
    const held = at(this.state, number);
    const right =
      held === ABSENT ? value === undefined : value !== undefined && sameBytes(value, at(this.dataset.pool, held));
    if (!right) this.tally.wrong++;
  }

  /** Bytes of an entry. */
  protected get entryBytes(): number {
    return this.dataset.keyBytes + this.dataset.valueBytes;
  }
}

/** The keys and values of a batch, looked up before they are timed. */
export function entriesOf(dataset: Dataset, { numbers, values }: BatchTrace): BatchEntries {
  return {
    keys: Array.from(numbers, (number) => at(dataset.keys, number)),
    values: Array.from(values, (value) => at(dataset.pool, value)),
  };
}
