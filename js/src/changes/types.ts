/**
 * The public types of the change feed.
 * Invariant: types only; nothing here exists at run time.
 */

import type { StoreIterator } from '../store/scan-iterator.ts';
import type { KeyRange, ScanOptions, WaitOptions } from '../types.ts';

/** A value was set. */
export interface SetChange<K, V> {
  readonly type: 'set';
  readonly key: K;
  /** Undefined with `keysOnly`. */
  readonly value: V;
  /** Rises with every change; those of one batch have sequences one after another. */
  readonly sequence: number;
  /** When the entry expires, or undefined when it does not. That it expires is no change. */
  readonly expires: Date | undefined;
}

/** A key was deleted, whether it was there or not. */
export interface DeleteChange<K> {
  readonly type: 'delete';
  readonly key: K;
  readonly sequence: number;
}

/** All keys of a range were deleted; the range may reach beyond what is watched. */
export interface DeleteRangeChange<K> {
  readonly type: 'deleteRange';
  /** As `deleteRange` takes it; without bounds after `clear()`. */
  readonly range: KeyRange<K>;
  readonly sequence: number;
}

/** History was cut: what happened behind `since`, up to `sequence`, is not known. Read anew; the changes go on behind `sequence`. */
export interface Gap {
  readonly type: 'gap';
  readonly since: number;
  readonly sequence: number;
}

/** What `changes` and `watch` bring. */
export type Change<K, V> = SetChange<K, V> | DeleteChange<K> | DeleteRangeChange<K> | Gap;

/** Options of `watch`. */
export interface WatchOptions extends WaitOptions {
  /** Leaves the values out: they are undefined then. Default false. */
  keysOnly?: boolean | undefined;
}

/** Options of `changes`. */
export interface ChangesOptions<K> extends WatchOptions, KeyRange<K> {
  /**
   * Only changes behind this sequence: that of the last change that was handled (of a batch, of its last one), of a receipt, of a
   * snapshot, or 0 for all there is. Default: from the call on.
   */
  since?: number | undefined;
}

/** An iterator over changes. It ends only when it is left, by its signal, or with the store (`VARVE_CLOSED`). */
export type ChangeIterator<K, V> = StoreIterator<Change<K, V>>;

/** What a live range is read as. */
export interface LiveRange<K> extends Omit<ScanOptions<K>, 'signal'> {
  /** Default `entries`. */
  as?: 'entries' | 'keys' | 'values' | 'count' | undefined;
}

/** Options of `live`. */
export interface LiveOptions<T> {
  /** The value until the query has one. Default undefined. */
  initial?: T;
}

/**
 * A query whose result is kept up to date while somebody is subscribed: a store in the sense of Svelte, and what React's
 * `useSyncExternalStore(live.subscribe, live.getSnapshot, live.getServerSnapshot)` takes. `Q` is what `update` takes.
 */
export interface Live<T, Q extends readonly unknown[] = never> {
  /**
   * Calls `next` at once with the value that there is, `initial` before the first one, then with each new one; `error` with what the
   * query or the store fails with, which ends it. Gives what ends the subscription.
   */
  readonly subscribe: (next: (value: T) => void, error?: (error: unknown) => void) => () => void;
  /** The last value; the same object until there is another. */
  readonly getSnapshot: () => T;
  /** The value of `initial`: what a server renders, and a page that takes over what it rendered. */
  readonly getServerSnapshot: () => T;
  /** The last value. */
  readonly value: T;
  /**
   * Puts another query in the place of this one. The value stays until the new query has one. Throws for what is no query; the old
   * one goes on then.
   *
   * @example
   * const found = db.live({ prefix: ['tag', 'red'] }, { initial: [] });
   * found.update({ prefix: ['tag', 'blue'] }); // red ones until the blue ones are there
   */
  update(...query: Q): void;
}
