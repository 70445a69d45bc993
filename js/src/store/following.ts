/**
 * What of following changes a page loads at once: where it begins, and stand-ins for what is loaded when it is used.
 *
 * Invariant: whatever loads later, changes are told from the moment of the call on: the engine is asked in its turn how far it is.
 */

import type { Change, ChangeIterator, Live } from '../changes/types.ts';
import { VarveError } from '../errors.ts';
import { Op } from '../protocol/frame.ts';
import type { Operation } from '../protocol/frame-writer.ts';
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

  next(): Promise<IteratorResult<Change<K, V>, undefined>> {
    return this.#made.then((made) => made.next());
  }

  async return(): Promise<IteratorResult<Change<K, V>, undefined>> {
    this.#made.then((made) => made.return?.()).catch(() => undefined);
    return { done: true, value: undefined };
  }

  throw(error?: unknown): Promise<IteratorResult<Change<K, V>, undefined>> {
    void this.return();
    return Promise.reject(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [asyncDispose](): Promise<void> {
    await this.return();
  }
}

interface Subscriber<T> {
  readonly next: (value: T) => void;
  readonly error: ((error: unknown) => void) | undefined;
}

/** Reads a query now and after each change, until the signal aborts. */
export type LiveRun = (emit: (value: unknown) => void, signal: AbortSignal) => Promise<void>;

/** A query that runs while somebody is subscribed. `prepare` throws for what is no query. */
export function liveQuery<T, Q extends readonly unknown[]>(
  prepare: (...query: Q) => LiveRun,
  initial: T,
  ...query: Q
): Live<T, Q> {
  const subscribers = new Set<Subscriber<T>>();
  let run = prepare(...query);
  let value = initial;
  /** Ends the run that counts. */
  let running = new AbortController();
  const start = async (): Promise<void> => {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    try {
      await run((next) => {
        value = next as T;
        for (const subscriber of subscribers) {
          // In a turn of its own: what a subscriber throws is its own affair.
          queueMicrotask(() => subscribers.has(subscriber) && subscriber.next(next as T));
        }
      }, signal);
    } catch (failure) {
      if (signal.aborted) return;
      // A store that was closed is no news; of anything else somebody should hear.
      let isHeard = (failure as { code?: unknown })?.code === 'VARVE_CLOSED';
      for (const { error } of subscribers) {
        if (error === undefined) continue;
        isHeard = true;
        queueMicrotask(() => error(failure));
      }
      subscribers.clear();
      if (!isHeard) throw failure;
    }
  };
  return {
    get value() {
      return value;
    },
    getSnapshot: () => value,
    getServerSnapshot: () => initial,
    update(...query) {
      run = prepare(...query);
      if (subscribers.size > 0) void start();
    },
    subscribe(next, error) {
      const subscriber = { next, error };
      subscribers.add(subscriber);
      if (subscribers.size === 1) void start();
      next(value);
      return () => {
        if (subscribers.delete(subscriber) && subscribers.size === 0) running.abort();
      };
    },
  };
}
