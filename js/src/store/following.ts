/**
 * What of following changes a page loads at once: where it begins, and stand-ins for what is loaded when it is used.
 *
 * Invariant: whatever loads later, changes are told from the moment of the call on: the engine is asked in its turn how far it is.
 */

import type { Change, ChangeIterator, Live } from '../changes/types.ts';
import { VarveError } from '../errors.ts';
import { Op } from '../protocol/frame.ts';
import type { Operation } from '../protocol/frame-writer.ts';
import type { KeyRange } from '../types.ts';
import { asyncDispose } from './dispose.ts';

/** Asks for the sequence of the last write called before it: for changes behind no sequence that there is. */
export const changes_now: Operation<undefined, undefined, number> = {
  code: Op.changes,
  key: undefined,
  value: {
    write(_, sink) {
      for (let i = 0; i < 6; i++) sink.u32(i < 2 ? 0xffff_ffff : 0);
    },
  },
  read: (answer) => answer.u64(answer.start),
};

const FIELDS = ['gt', 'gte', 'lt', 'lte', 'prefix'];

/** Whether it is a range, and no key: an object with the fields of ranges, and of `more`, alone. */
export function isRange<K, R extends KeyRange<K>>(target: K | R, more: readonly string[] = []): target is R {
  if (typeof target !== 'object' || target === null) return false;
  const prototype: unknown = Object.getPrototypeOf(target);
  const isPlain = prototype === Object.prototype || prototype === null;
  return isPlain && Object.keys(target).every((field) => FIELDS.includes(field) || more.includes(field));
}

/** Throws unless changes can be behind it. */
export function checkSince(since: number): void {
  if (!Number.isSafeInteger(since) || since < 0) {
    throw new VarveError('VARVE_INVALID_ARGUMENT', `since is the sequence of a change, from 0, not ${since}.`);
  }
}

/** An iterator whose making takes a while. */
export class LaterIterator<K, V> implements ChangeIterator<K, V> {
  readonly #made: Promise<ChangeIterator<K, V>>;

  constructor(made: Promise<ChangeIterator<K, V>>) {
    this.#made = made;
    // Who iterates hears of it.
    made.catch(() => undefined);
  }

  async next(): Promise<IteratorResult<Change<K, V>, undefined>> {
    return (await this.#made).next();
  }

  async return(): Promise<IteratorResult<Change<K, V>, undefined>> {
    this.#made.then((made) => made.return?.()).catch(() => undefined);
    return { done: true, value: undefined };
  }

  async throw(error?: unknown): Promise<IteratorResult<Change<K, V>, undefined>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [asyncDispose](): Promise<void> {
    await this.return();
  }
}

interface Subscriber<T> {
  readonly next: (value: T | undefined) => void;
  readonly error: ((error: unknown) => void) | undefined;
}

/** A query that runs while somebody is subscribed. */
export class LiveQuery<T> implements Live<T> {
  readonly #run: (emit: (value: T) => void, stopped: () => boolean) => Promise<void>;
  readonly #subscribers = new Set<Subscriber<T>>();
  /** Which run counts. */
  #runs = 0;
  #value: T | undefined;

  constructor(run: (emit: (value: T) => void, stopped: () => boolean) => Promise<void>) {
    this.#run = run;
  }

  get value(): T | undefined {
    return this.#value;
  }

  readonly getSnapshot = (): T | undefined => this.#value;

  readonly subscribe = (next: (value: T | undefined) => void, error?: (error: unknown) => void): (() => void) => {
    const subscriber = { next, error };
    this.#subscribers.add(subscriber);
    if (this.#subscribers.size === 1) void this.#start();
    next(this.#value);
    return () => {
      if (this.#subscribers.delete(subscriber) && this.#subscribers.size === 0) this.#runs++;
    };
  };

  async #start(): Promise<void> {
    const run = ++this.#runs;
    const emit = (value: T): void => {
      this.#value = value;
      for (const subscriber of this.#subscribers) {
        // In a turn of its own: what a subscriber throws is its own affair.
        queueMicrotask(() => this.#subscribers.has(subscriber) && subscriber.next(value));
      }
    };
    try {
      await this.#run(emit, () => run !== this.#runs);
    } catch (failure) {
      if (run !== this.#runs) return;
      const listeners = [...this.#subscribers].filter(({ error }) => error !== undefined);
      this.#subscribers.clear();
      for (const { error } of listeners) queueMicrotask(() => error?.(failure));
      // A store that was closed is no news; anything else somebody should hear of.
      if (listeners.length === 0 && (failure as { code?: unknown })?.code !== 'VARVE_CLOSED') throw failure;
    }
  }
}
