/**
 * The calls that stores share, with their documentation. Types only.
 *
 * `varve/synchronous` returns each result itself, every other store a promise of it.
 */

import type {
  Condition,
  CountOptions,
  DeleteOptions,
  DeleteReceipt,
  Entry,
  Eventual,
  Key,
  KeyRange,
  Lifetime,
  Receipt,
  ScanOptions,
  SetItemOptions,
  SetOptions,
  WaitOptions,
  WriteOptions,
} from './types.ts';

/** A part of a store: the first elements of its keys, or a view. */
export type Place<K, V> = readonly Key[] | Pick<Reads<K, V>, 'get' | 'keys'>;

/** Reads of a store, of a snapshot or in a transaction. Do not implement it yourself: a minor version may add members. */
export interface Reads<K, V> {
  /**
   * The value of a key, or undefined if the key is absent.
   *
   * @example
   * const note = await db.get(['note', 42]);
   */
  get(key: K, options?: WaitOptions): Eventual<V | undefined>;
  /** The values of several keys, in their order, all at the same read point. */
  getMany(keys: Iterable<K>, options?: WaitOptions): Eventual<(V | undefined)[]>;
  /**
   * The value of a key, the sequence of the write that set it, and the time when it expires. Undefined if the key is absent.
   *
   * @example
   * const entry = await db.getEntry('etag'); // { value, sequence: 17, expiresAt: undefined }
   */
  getEntry(key: K, options?: WaitOptions): Eventual<Entry<V> | undefined>;
  /** Whether a key is there; its value is not transferred. */
  has(key: K, options?: WaitOptions): Eventual<boolean>;
  /** Whether each of several keys is there, in their order. */
  hasMany(keys: Iterable<K>, options?: WaitOptions): Eventual<boolean[]>;
  /**
   * The keys of a range, in order, as they are at this call. Values are not read. Throws `VARVE_INVALID_ARGUMENT` at
   * once for an invalid range.
   *
   * @example
   * for await (const key of db.keys({ gte: 'a', lt: 'b' })) console.log(key);
   */
  keys(options?: ScanOptions<K>): AsyncIterable<K> | Iterable<K>;
  /** The values of a range, in the order of their keys, as they are at this call. */
  values(options?: ScanOptions<K>): AsyncIterable<V> | Iterable<V>;
  /**
   * The entries of a range, in the order of their keys, as they are at this call.
   *
   * @example
   * for await (const [key, value] of db.entries({ prefix: ['note'], reverse: true, limit: 20 })) show(key, value);
   */
  entries(options?: ScanOptions<K>): AsyncIterable<[K, V]> | Iterable<[K, V]>;
  /** How many keys a range has at this call. The engine counts, slice by slice; no key is transferred. */
  count(range?: CountOptions<K>): Eventual<number>;
}

/** Writes of a store. Do not implement it yourself: a minor version may add members. */
export interface Writes<K, V> {
  /**
   * Writes a value; its receipt shows how durable it is. The value is encoded before the call returns, so you can change the object
   * afterwards without an effect on the store. If it has Blobs, they are read first, and all later calls of this opening wait for that.
   * Without a lifetime the entry never expires, even if it replaces an entry that would have expired; `update` keeps an expiry.
   *
   * @example
   * await db.set(['note', 42], { title: 'Silt' }, { durability: 'strict' });
   * await db.set(['session', id], user, { expiresIn: 60_000 });
   * await db.set('leader', me, { ifSequence: null }); // VARVE_CONFLICT if there is one
   */
  set(key: K, value: V, options?: SetOptions): Eventual<Receipt>;
  /** Writes several entries, all or none. */
  setMany(entries: Iterable<readonly [K, V]>, options?: WriteOptions): Eventual<Receipt>;
  /**
   * Deletes a key. The result is the same whether the key was there or not. With `existed: true` the receipt reports that: nobody writes
   * the key between the look at it and its deletion.
   *
   * @example
   * await db.delete(['note', 42]);
   * await db.delete('lock', { ifSequence: receipt.sequence }); // only if nobody else wrote it
   * const { existed } = await db.delete(['job', 7], { existed: true }); // true for one of several callers
   */
  delete(key: K, options: DeleteOptions & { existed: true }): Eventual<DeleteReceipt>;
  delete(key: K, options?: DeleteOptions): Eventual<Receipt>;
  /**
   * Deletes every key of a range, at the cost of one write. A range without bounds is refused with `VARVE_INVALID_ARGUMENT`: use
   * `clear()` for that.
   *
   * @example
   * await db.deleteRange({ prefix: ['note'] });
   */
  deleteRange(range: KeyRange<K>, options?: WriteOptions): Eventual<Receipt>;
  /** Deletes everything, at the cost of one write. The space is freed in the background. */
  clear(options?: WriteOptions): Eventual<Receipt>;
  /**
   * Starts a batch: writes that are applied together or not at all.
   *
   * @example
   * await db.batch().set('from', 90).set('to', 10).commit();
   */
  batch(): BatchWrites<K, V> & {
    /**
     * Applies all writes; the result is there when they have the requested durability. Fails with `VARVE_CONFLICT` when a condition was
     * not true. Can be called once; a call that an aborted signal refused does not count.
     */
    commit(options?: WriteOptions): Eventual<Receipt>;
  };
}

/** Writes of a batch. */
export interface BatchWrites<K, V> {
  /** Writes added so far. */
  readonly size: number;
  /**
   * Adds a write. Throws `VARVE_INVALID_KEY` or `VARVE_INVALID_VALUE`; the batch is then unchanged. `ifSequence` is compared
   * with the store before the batch: if one condition is not true, nothing of the batch is written.
   *
   * @example
   * await db.batch().set('token', token, { expiresIn: 60_000 }).set('owner', me, { ifSequence: null }).commit();
   */
  set(key: K, value: V, options?: SetItemOptions): this;
  /** Adds the deletion of a key. */
  delete(key: K, options?: Condition): this;
  /** Adds the deletion of every key of a range that is there when the batch is applied, or was set earlier in it. */
  deleteRange(range: KeyRange<K>): this;
}

/** Writes of a transaction. They return at once, and are applied together when the function of the transaction has returned. */
export interface TransactionWrites<K, V> {
  /**
   * Writes a value. It is encoded before the call returns. Its lifetime, if it has one, begins with the commit. Without a lifetime it
   * never expires, even if it replaces an entry that would have expired; `update` keeps an expiry.
   *
   * @example
   * tx.set(['session', id], user, { expiresIn: 60_000 });
   */
  set(key: K, value: V, options?: Lifetime): void;
  /** Deletes a key. */
  delete(key: K): void;
  /** Deletes every key of a range. A range without bounds is refused: use `clear()` for that. */
  deleteRange(range: KeyRange<K>): void;
  /** Deletes everything. */
  clear(): void;
}
