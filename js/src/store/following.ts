/**
 * The part of following changes that a page loads at once: the start position, and stand-ins for code that is loaded at first use.
 *
 * Invariant: however late the code loads, changes are reported from the call on: the engine is asked for its sequence in the turn
 * of the call.
 */

import type { ChangeSource } from '../changes/change-source.ts';
import type { Change, Live } from '../changes/types.ts';
import { hasCode, invalid } from '../errors.ts';
import { Op } from '../protocol/frame.ts';
import type { Operation } from '../protocol/frame-writer.ts';
import { StepIterator } from './step-iterator.ts';

/** Asks for the sequence of the last write called before it: by asking for the changes after a sequence that does not exist yet. */
export const changesNow: Operation<undefined, undefined, number> = {
  code: Op.changes,
  key: undefined,
  value: {
    write(_, sink) {
      for (let i = 0; i < 6; i++) sink.u32(i < 2 ? 0xffff_ffff : 0);
    },
  },
  read: (answer) => answer.u64(answer.start),
};

/** Throws unless it can be a `since`. */
export function checkSince(since: number): void {
  if (!Number.isSafeInteger(since) || since < 0) {
    throw invalid(`since is the sequence of a change, from 0, not ${since}.`);
  }
}

/** The iterator that `changes()` and `watch()` return. Its source is loaded later. */
export class ChangesIterator<K, V> extends StepIterator<Change<K, V>> {
  readonly #made: Promise<ChangeSource<K, V>>;

  constructor(made: Promise<ChangeSource<K, V>>) {
    super();
    this.#made = made;
    // The caller that iterates gets the error.
    made.catch(() => undefined);
  }

  next(): Promise<IteratorResult<Change<K, V>, undefined>> {
    return this.#made.then((made) => made.next());
  }

  protected close(): void {
    this.#made.then((made) => made.end()).catch(() => undefined);
  }
}

interface Subscriber<T> {
  readonly next: (value: T) => void;
  readonly error: ((error: unknown) => void) | undefined;
}

/** Reads a query now and after each change, until the signal aborts. */
export type LiveRun = (emit: (value: unknown) => void, signal: AbortSignal) => Promise<void>;

/** A query that runs while somebody is subscribed. `prepare` throws for an invalid query. */
export function liveQuery<T, Q extends readonly unknown[]>(
  prepare: (...query: Q) => LiveRun,
  initial: T,
  ...query: Q
): Live<T, Q> {
  const subscribers = new Set<Subscriber<T>>();
  let run = prepare(...query);
  let value = initial;
  /** Ends the current run. */
  let running = new AbortController();
  const start = async (): Promise<void> => {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    try {
      await run((next) => {
        value = next as T;
        for (const subscriber of subscribers) {
          // In a separate microtask: an error that a subscriber throws must not disturb the others.
          queueMicrotask(() => subscribers.has(subscriber) && subscriber.next(next as T));
        }
      }, signal);
    } catch (failure) {
      if (signal.aborted) return;
      // The close of the store need not be reported; every other error must be.
      let isHeard = hasCode(failure, 'VARVE_CLOSED');
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
      // First: if it throws, its caller has no function that ends the subscription.
      next(value);
      const subscriber = { next, error };
      subscribers.add(subscriber);
      if (subscribers.size === 1) void start();
      return () => {
        if (subscribers.delete(subscriber) && subscribers.size === 0) running.abort();
      };
    },
  };
}
