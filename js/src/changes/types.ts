/**
 * The public types of the change feed.
 * Invariant: types only; nothing here exists at run time.
 */

import type { KeyRange, ScanOptions, StoreIterator, WaitOptions } from '../types.ts';

/** A value was set. */
export interface SetChange<K, V> {
  readonly type: 'set';
  readonly key: K;
  /** Undefined with `keysOnly`. */
  readonly value: V;
  /** Rises with every change; the changes of one batch have consecutive sequences. */
  readonly sequence: number;
  /** When the entry expires; undefined if it does not expire. The expiry itself is not a change. */
  readonly expiresAt: Date | undefined;
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
  /** The range in the form that `deleteRange` takes; without bounds after `clear()`. */
  readonly range: KeyRange<K>;
  readonly sequence: number;
}

/**
 * A part of the history is gone: the changes after `since`, up to `sequence`, are unknown. Read your data again; the next changes are
 * those after `sequence`.
 */
export interface Gap {
  readonly type: 'gap';
  readonly since: number;
  readonly sequence: number;
}

/** A change, as `changes` and `watch` report it. A minor version may add a `type`: treat one that you do not know as a gap. */
export type Change<K, V> = SetChange<K, V> | DeleteChange<K> | DeleteRangeChange<K> | Gap;

/** Options of `watch`. */
export interface WatchOptions extends WaitOptions {
  /** Omits the values: they are then undefined. Default false. */
  keysOnly?: boolean | undefined;
}

/** Options of `changes`. */
export interface ChangesOptions<K> extends WatchOptions, KeyRange<K> {
  /**
   * Only changes after this sequence: that of the last change that you handled (of a batch: of its last change), of a receipt, or of
   * a snapshot. 0: the whole history. Default: only changes after the call.
   */
  since?: number | undefined;
}

/** An iterator over changes. It ends only when the loop is left, its signal aborts, or the store is closed (`VARVE_CLOSED`) or failed. */
export type ChangeIterator<K, V> = StoreIterator<Change<K, V>>;

/** A range for a live query, and what the query returns for it. */
export interface LiveRange<K> extends Omit<ScanOptions<K>, 'signal'> {
  /** Default `entries`. */
  as?: 'entries' | 'keys' | 'values' | undefined;
}

/** A range whose keys a live query counts. As for `count`, it has neither `reverse` nor `limit`. */
export interface LiveCount<K> extends KeyRange<K> {
  as: 'count';
}

/** Options of `live`. */
export interface LiveOptions<T> {
  /** The value until the query has a result. Default undefined. */
  initial?: T;
}

/**
 * A query whose result is kept up to date while somebody is subscribed. It is a store in the sense of Svelte, and it fits React's
 * `useSyncExternalStore(live.subscribe, live.getSnapshot, live.getServerSnapshot)`. `Q` are the arguments of `update`.
 */
export interface Live<T, Q extends readonly unknown[] = never> {
  /**
   * Calls `next` at once with the present value (`initial` before the first result), and then with each new value. If the query or the
   * store fails, calls `error`, and the subscription ends. Returns a function that ends the subscription.
   */
  readonly subscribe: (next: (value: T) => void, error?: (error: unknown) => void) => () => void;
  /** The last value: the same object until there is a new value. */
  readonly getSnapshot: () => T;
  /** The value of `initial`: for rendering on a server, and for hydrating that result in a page. */
  readonly getServerSnapshot: () => T;
  /** The last value. */
  readonly value: T;
  /**
   * Replaces this query by another one. The value stays until the new query has a result. Throws for an invalid query; then the old
   * query continues.
   *
   * @example
   * const found = db.live({ prefix: ['tag', 'red'] }, { initial: [] });
   * found.update({ prefix: ['tag', 'blue'] }); // red ones until the blue ones are there
   */
  update(...query: Q): void;
}
