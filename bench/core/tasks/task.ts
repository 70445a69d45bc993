/**
 * A task is the calls of one round, made group by group against one session.
 *
 * Invariant: `run` and `finish` are all that is timed; `check` is not. Of every group of reads one value, drawn at
 * random, is compared byte by byte with what was written; counts are compared for all. The whole store is verified
 * after the round (verify.ts).
 */

import type { BatchEntries, Session, Sink } from '../engine.ts';
import { at, type Dataset, type Key, Random, sameBytes } from '../generator.ts';
import { ABSENT, type BatchTrace, type State } from '../trace.ts';

export interface Tally {
  /** Operations as the suite counts them: calls, entries of batches and scans, or ranges. */
  ops: number;
  bytes: number;
  reads: number;
  hits: number;
  wrong: number;
}

export function emptyTally(): Tally {
  return { ops: 0, bytes: 0, reads: 0, hits: 0, wrong: 0 };
}

export interface Task {
  readonly calls: number;
  readonly tally: Tally;
  /** Where reads and writes are timed apart: whether a call writes nothing. */
  readonly isRead?: ((call: number) => boolean) | undefined;
  run(from: number, to: number): void | Promise<void>;
  /** Resolves when all that was written has reached its level. */
  finish(): void | Promise<void>;
  /** Counts and checks the calls from `from` to `to`, and brings the state up to date. */
  check(from: number, to: number): void | Promise<void>;
}

export class TaskBase {
  readonly tally = emptyTally();
  protected readonly random = new Random(0x5a3b1e);

  constructor(
    readonly dataset: Dataset,
    readonly state: State,
    /** Of an echo the length of a value alone is checked. */
    readonly isEcho = false,
  ) {}

  /** Counts a failed check unless `value` is what key `number` must hold. */
  expect(number: number, value: Uint8Array | undefined): void {
    if (this.isEcho) {
      if (value?.length !== this.dataset.valueBytes) this.tally.wrong++;
      return;
    }
    const held = at(this.state, number);
    const right =
      held === ABSENT ? value === undefined : value !== undefined && sameBytes(value, at(this.dataset.pool, held));
    if (!right) this.tally.wrong++;
  }

  get entryBytes(): number {
    return this.dataset.keyBytes + this.dataset.valueBytes;
  }
}

/** A call that answers at once is not waited for: to its engine that would be the end of a turn. */
export function isLater(given: unknown): given is PromiseLike<unknown> {
  return typeof (given as PromiseLike<unknown> | undefined)?.then === 'function';
}

/** Calls that are each long enough for a closure: a batch, a range, a transaction. */
interface CallsOptions<T> {
  readonly calls: number;
  readonly waves: boolean;
  /** Calls of a group, where they are prepared group by group. */
  readonly group?: number;
  prepare?(from: number, to: number): void;
  run(call: number): T | PromiseLike<T>;
  check(call: number, answer: T): void | Promise<void>;
  finish?(): void;
}

export class Calls<T> implements Task {
  readonly calls: number;
  #answers: T[] = [];

  constructor(
    readonly tally: Tally,
    private readonly options: CallsOptions<T>,
  ) {
    this.calls = options.calls;
    this.#prepare(0);
  }

  run(from: number, to: number): void | Promise<void> {
    if (this.options.waves) return this.#together(from, to);
    for (let call = from; call < to; call++) {
      const given = this.options.run(call);
      if (isLater(given)) return this.#oneByOne(given, call + 1, to);
      this.#answers.push(given);
    }
  }

  finish(): void {
    this.options.finish?.();
  }

  check(from: number, to: number): void | Promise<void> {
    const later: Promise<void>[] = [];
    for (const [i, answer] of this.#answers.splice(0).entries()) {
      const checked = this.options.check(from + i, answer);
      if (checked !== undefined) later.push(checked);
    }
    this.#prepare(to);
    if (later.length > 0) return Promise.all(later).then(() => undefined);
  }

  #prepare(from: number): void {
    const { calls, group = calls } = this.options;
    if (from < calls) this.options.prepare?.(from, Math.min(from + group, calls));
  }

  async #together(from: number, to: number): Promise<void> {
    this.#answers = await Promise.all(Array.from({ length: to - from }, (_, i) => this.options.run(from + i)));
  }

  async #oneByOne(first: PromiseLike<T>, from: number, to: number): Promise<void> {
    this.#answers.push(await first);
    for (let call = from; call < to; call++) this.#answers.push(await this.options.run(call));
  }
}

export function entriesOf(dataset: Dataset, { numbers, values }: BatchTrace): BatchEntries {
  return {
    keys: Array.from(numbers, (number) => at(dataset.keys, number)),
    values: Array.from(values, (value) => at(dataset.pool, value)),
  };
}

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

export function rangeOf(session: Session, from: Key | undefined, size: number): LastEntry | Promise<LastEntry> {
  const sink = new LastEntry();
  const running = session.range(from, size, sink);
  return isLater(running) ? running.then(() => sink) : sink;
}
