/**
 * The asynchronous store: what `open` of `varve` resolves with.
 *
 * Invariant: operations take effect in the order of their calls; the ones of a turn travel together, reads see the
 * writes called before them. The store itself holds no data: what it knows is in the engine behind its client.
 */

import { encodeRange } from '../codec/range.ts';
import { abortError } from '../errors.ts';
import { BatchWriter } from '../protocol/batch-writer.ts';
import { namedConflict } from '../protocol/conflict.ts';
import { levelNumber } from '../protocol/frame.ts';
import type { Operation } from '../protocol/frame-writer.ts';
import type { OpenReport } from '../protocol/messages.ts';
import type {
  CompactOptions,
  CompactProgress,
  DeleteKeyOptions,
  Durability,
  Entry,
  KeyCodec,
  KeyRange,
  OpenOptions,
  Receipt,
  RecoveryReport,
  ScanOptions,
  SetOptions,
  StorageReport,
  StoreStats,
  UpdateOptions,
  WaitOptions,
  WriteOptions,
} from '../types.ts';
import type { Client } from '../worker/client.ts';
import { Batch } from './batch.ts';
import { Cursor, firstBatchBytes } from './cursor.ts';
import { asyncDispose } from './dispose.ts';
import {
  batch_operation,
  delete_range,
  Operations,
  type ScanOperations,
  scan_entries,
  scan_keys,
  scan_values,
  sync_operation,
} from './operations.ts';
import { checkDurability, checkLimit, UPDATE_ATTEMPTS_MAX } from './options.ts';
import { ScanIterator, type StoreIterator, type Unpack } from './scan-iterator.ts';

/** Bounds of everything, for the operation that deletes a range. */
const NOTHING = new Uint8Array(0);

/**
 * An open store: a durable, ordered map. Every method rejects with a `VarveError`: `VARVE_CLOSED` after `close()`,
 * `VARVE_ABORTED` when its signal aborts, `VARVE_INVALID_KEY` and `VARVE_INVALID_VALUE` for what cannot be stored,
 * `VARVE_STORAGE_FULL`, `VARVE_CORRUPT`, `VARVE_IO` and `VARVE_POISONED` when the storage fails.
 *
 * A Uint8Array that is read is a view of a larger buffer: `slice()` what you transfer or keep for long.
 *
 * @example
 * const db = await open<string, number>('counters');
 * await db.set('visits', 1);
 * await db.get('visits'); // 1
 */
export class Store<K, V> implements AsyncIterable<[K, V]>, AsyncDisposable {
  /** The name it was opened by. */
  readonly name: string;
  /** The storage in use, and why not a better one. */
  readonly storage: StorageReport;
  /** What opening it found: a new store, a clean one, or a log that was replayed. */
  readonly recovery: RecoveryReport;
  readonly #client: Client;
  readonly #operations: Operations<K, V>;
  readonly #key_codec: KeyCodec<K> | undefined;
  readonly #level: number;
  readonly #on_close: () => void;

  /** @internal Made by `open`. */
  constructor(name: string, client: Client, report: OpenReport, options: OpenOptions<K, V>, on_close: () => void) {
    this.name = name;
    this.storage = report.storage;
    this.recovery = report.recovery;
    this.#client = client;
    this.#operations = new Operations(options.keys, options.values);
    this.#key_codec = options.keys;
    this.#level = levelNumber(options.durability ?? 'relaxed');
    this.#on_close = on_close;
  }

  /**
   * The value of a key, or undefined where there is none.
   *
   * @example
   * const note = await db.get(['note', 42]);
   */
  get(key: K, options?: WaitOptions): Promise<V | undefined> {
    return this.#client.submit(this.#operations.get, key, undefined, 0, options?.signal);
  }

  /**
   * The values of several keys, in their order, all as of one moment.
   *
   * @example
   * const [a, b] = await db.getMany(['a', 'b']);
   */
  getMany(keys: Iterable<K>, options?: WaitOptions): Promise<(V | undefined)[]> {
    return this.#client.submit(this.#operations.getMany, undefined, [...keys], 0, options?.signal);
  }

  /**
   * The value of a key with the sequence of the write that made it and when it expires.
   *
   * @example
   * const entry = await db.getEntry('etag'); // { value, sequence: 17, expires: undefined }
   */
  getEntry(key: K, options?: WaitOptions): Promise<Entry<V> | undefined> {
    return this.#client.submit(this.#operations.getEntry, key, undefined, 0, options?.signal);
  }

  /**
   * Whether a key is there; its value is not moved.
   *
   * @example
   * if (!(await db.has('seen'))) await db.set('seen', true);
   */
  has(key: K, options?: WaitOptions): Promise<boolean> {
    return this.#client.submit(this.#operations.has, key, undefined, 0, options?.signal);
  }

  /**
   * Whether each of several keys is there, in their order.
   *
   * @example
   * const [a, b] = await db.hasMany(['a', 'b']);
   */
  hasMany(keys: Iterable<K>, options?: WaitOptions): Promise<boolean[]> {
    return Promise.all(Array.from(keys, (key) => this.has(key, options)));
  }

  /**
   * Writes a value; resolves when it is as durable as asked. The value is encoded before the call returns, so changing
   * it afterwards changes nothing.
   *
   * @example
   * await db.set(['note', 42], { title: 'Silt' }, { durability: 'strict' });
   * await db.set(['session', id], user, { expiresIn: 60_000 });
   * await db.set('leader', me, { ifSequence: null }); // VARVE_CONFLICT if there is one
   */
  set(key: K, value: V, options?: SetOptions): Promise<Receipt> {
    if (options?.expiresIn === undefined && options?.ifSequence === undefined) {
      return this.#write(this.#operations.set, key, value, options);
    }
    const { keys, values } = this.#operations;
    return this.#collected((writer) => writer.set(keys, key, values, value, options), options);
  }

  /**
   * Replaces a value by what `change` makes of it: reads, calls `change` (with undefined for an absent key), and writes
   * unless someone wrote the key meanwhile; then it reads and calls `change` again, 16 times at most, after which it rejects with
   * `VARVE_CONFLICT`. An expiry of the old entry is not kept: give `expiresIn`.
   *
   * @example
   * await db.update('visits', (visits = 0) => visits + 1);
   */
  async update(
    key: K,
    change: (value: V | undefined) => V | PromiseLike<V>,
    options: UpdateOptions = {},
  ): Promise<Receipt> {
    for (let attempt = 1; ; attempt++) {
      const entry = await this.getEntry(key, options);
      const value = await change(entry?.value);
      try {
        return await this.set(key, value, { ...options, ifSequence: entry?.sequence ?? null });
      } catch (error) {
        if (attempt === UPDATE_ATTEMPTS_MAX || (error as { code?: unknown })?.code !== 'VARVE_CONFLICT') throw error;
      }
    }
  }

  /**
   * Writes several entries, all or none.
   *
   * @example
   * await db.setMany([['a', 1], ['b', 2]]);
   */
  setMany(entries: Iterable<readonly [K, V]>, options?: WriteOptions): Promise<Receipt> {
    const { keys, values } = this.#operations;
    return this.#collected((writer) => {
      for (const [key, value] of entries) writer.set(keys, key, values, value);
    }, options);
  }

  /**
   * Deletes a key. Resolves alike whether it was there or not.
   *
   * @example
   * await db.delete(['note', 42]);
   * await db.delete('lock', { ifSequence: receipt.sequence }); // only if nobody else wrote it
   */
  delete(key: K, options?: DeleteKeyOptions): Promise<Receipt> {
    if (options?.ifSequence === undefined) return this.#write(this.#operations.delete, key, undefined, options);
    const { ifSequence } = options;
    return this.#collected((writer) => writer.delete(this.#operations.keys, key, { ifSequence }), options);
  }

  /**
   * Deletes every key of a range, at the cost of one write. Rejects with `VARVE_INVALID_ARGUMENT` for a range without
   * bounds: that is `clear()`.
   *
   * @example
   * await db.deleteRange({ prefix: ['note'] });
   */
  deleteRange(range: KeyRange<K>, options?: WriteOptions): Promise<Receipt> {
    try {
      return this.batch().deleteRange(range).commit(options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Deletes everything, at the cost of one write. The space is given back in the background.
   *
   * @example
   * await db.clear();
   */
  clear(options?: WriteOptions): Promise<Receipt> {
    return this.#write(delete_range, NOTHING, NOTHING, options);
  }

  /**
   * Starts a batch: writes that are applied together or not at all.
   *
   * @example
   * await db.batch().set('from', 90).set('to', 10).commit();
   */
  batch(): Batch<K, V> {
    return new Batch(this.#operations, this.#key_codec, (batch, options) => this.#commit(batch, options));
  }

  /**
   * The keys of a range, in order, as of the moment of this call. Values are not read. Throws `VARVE_INVALID_ARGUMENT` at
   * once for a range that makes no sense.
   *
   * @example
   * for await (const key of db.keys({ gte: 'a', lt: 'b' })) console.log(key);
   */
  keys(options: ScanOptions<K> = {}): StoreIterator<K> {
    const { keys } = this.#operations;
    return this.#scan(scan_keys, options, (batch) => {
      const all = keys.readAll(batch.keys, batch.key_ends);
      return (i) => all[i] as K;
    });
  }

  /**
   * The values of a range, in the order of their keys, as of the moment of this call.
   *
   * @example
   * for await (const note of db.values({ prefix: ['note'], limit: 20 })) show(note);
   */
  values(options: ScanOptions<K> = {}): StoreIterator<V> {
    const { values } = this.#operations;
    return this.#scan(scan_values, options, (batch) => {
      const { values: bytes, value_ends } = batch;
      return (i) => values.read(bytes, i === 0 ? 0 : (value_ends[i - 1] as number), value_ends[i] as number);
    });
  }

  /**
   * The entries of a range, in the order of their keys, as of the moment of this call.
   *
   * @example
   * for await (const [key, value] of db.entries({ prefix: ['note'], reverse: true, limit: 20 })) show(key, value);
   */
  entries(options: ScanOptions<K> = {}): StoreIterator<[K, V]> {
    const { keys, values } = this.#operations;
    return this.#scan(scan_entries, options, (batch) => {
      const { values: bytes, value_ends } = batch;
      const all = keys.readAll(batch.keys, batch.key_ends);
      return (i) => {
        const start = i === 0 ? 0 : (value_ends[i - 1] as number);
        return [all[i] as K, values.read(bytes, start, value_ends[i] as number)];
      };
    });
  }

  /** All entries, in the order of their keys: `for await (const [key, value] of db)`. */
  [Symbol.asyncIterator](): StoreIterator<[K, V]> {
    return this.entries();
  }

  /**
   * Numbers about the store as it is now.
   *
   * @example
   * const { levels } = await db.stats();
   */
  stats(): Promise<StoreStats> {
    return this.#client.ask({ type: 'call', method: 'stats', args: [] }) as Promise<StoreStats>;
  }

  /**
   * Makes everything acknowledged so far as durable as `strict`.
   *
   * @example
   * await db.setMany(rows);
   * await db.flush();
   */
  flush(options?: WaitOptions): Promise<void> {
    return this.#client.submit(sync_operation, undefined, undefined, 0, options?.signal);
  }

  /**
   * Merges all tables now, dropping what is shadowed or deleted. The store does this by itself, in the background;
   * reads and writes go on meanwhile, and what they write need not be in it.
   *
   * @example
   * await db.clear();
   * await db.compact({ onProgress: ({ done, planned }) => show(done / planned) }); // the space is free
   */
  async compact({ onProgress }: CompactOptions = {}): Promise<void> {
    // In a turn of its own: what a callback throws is the caller's affair, not the connection's.
    const progress = (value: unknown): void => queueMicrotask(() => onProgress?.(value as CompactProgress));
    await this.#client.ask({ type: 'call', method: 'compact', args: [] }, progress);
  }

  /**
   * Waits for what is under way, flushes it, seals the store and ends its worker. Closing twice is closing once.
   *
   * @example
   * await using db = await open('notes'); // closed at the end of the block
   */
  close(): Promise<void> {
    this.#on_close();
    return this.#client.close();
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Commits a batch of what `collect` adds. */
  #collected(collect: (writer: BatchWriter) => void, options?: WriteOptions): Promise<Receipt> {
    const writer = new BatchWriter();
    try {
      collect(writer);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#commit(writer, options);
  }

  #commit(batch: BatchWriter, options?: WriteOptions): Promise<Receipt> {
    const receipt = this.#write(batch_operation, undefined, batch.view(), options);
    if (!batch.has_conditions) return receipt;
    return receipt.catch((error) => {
      throw namedConflict(error, this.#operations.keys);
    });
  }

  #write<A, B>(operation: Operation<A, B, Receipt>, key: A, value: B, options?: WriteOptions): Promise<Receipt> {
    let level = this.#level;
    const durability: Durability | undefined = options?.durability;
    if (durability !== undefined) {
      try {
        checkDurability(durability);
      } catch (error) {
        return Promise.reject(error);
      }
      level = levelNumber(durability);
    }
    return this.#client.submit(operation, key, value, level, options?.signal);
  }

  #scan<T>(operations: ScanOperations, options: ScanOptions<K>, unpack: Unpack<T>): StoreIterator<T> {
    const { reverse = false, limit, signal } = options;
    if (limit !== undefined) checkLimit(limit);
    const range = encodeRange(options, this.#key_codec);
    this.#client.ensureOpen();
    if (signal?.aborted) throw abortError(signal);
    if (range.empty || limit === 0) return new ScanIterator(undefined, unpack, undefined);
    const batch_bytes = firstBatchBytes(limit);
    const cursor = new Cursor(this.#client, operations, { range, reverse, limit, batch_bytes, ...operations.wanted });
    return new ScanIterator(cursor, unpack, signal);
  }
}
