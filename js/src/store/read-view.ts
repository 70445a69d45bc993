/**
 * All reads, of a store as it is or of a snapshot.
 *
 * Invariant: a read sees the snapshot whose number it carries: 0 for the store at the time of the call.
 */

import type { Place, Reads } from '../api.ts';
import type { Client } from '../client/client.ts';
import { Operations, type ScanOperations, scanCount, scanEntries, scanKeys, scanValues } from '../client/operations.ts';
import { formatsAt } from '../codec/formats.ts';
import { type ByteRange, encodeRange } from '../codec/range.ts';
import { COUNT, checkLimit, checkOptions, SCAN, several, WAIT } from '../options.ts';
import type { Operation } from '../protocol/frame-writer.ts';
import { COUNT_BATCH } from '../protocol/scan.ts';
import type { CountOptions, Entry, Key, RangeIterator, ScanOptions, ViewOptions, WaitOptions } from '../types.ts';
import { type BatchSource, Cursor, firstBatchBytes, KeptBatch } from './cursor.ts';
import { type Course, entriesOf, keysOf, ScanIterator, type Unpack, valuesOf } from './scan-iterator.ts';
import { levelOfSnapshot } from './snapshot-handle.ts';

const SCANS = {
  keys: { operations: scanKeys, unpack: keysOf },
  values: { operations: scanValues, unpack: valuesOf },
  entries: { operations: scanEntries, unpack: entriesOf },
};

/** The read point of a view. */
export interface SnapshotState {
  /** The number of a snapshot, or 0 for the present. */
  readonly number: number;
  /** Why it cannot be read: it is closed, or it could not be taken. */
  refusal: unknown;
  /** While the snapshot is being taken: rejects if that fails. */
  taken?: Promise<unknown> | undefined;
  /** Kept from being collected, which would close it, while there are views of it. */
  owner?: object;
}

/** Reads of a store, or of a snapshot of it. */
export class ReadView<K, V> implements Reads<K, V>, AsyncIterable<[K, V]> {
  /** @internal */
  readonly client: Client;
  /** @internal */
  readonly formats: Operations<K, V>;
  readonly #state: SnapshotState;

  /** @internal */
  constructor(client: Client, operations: Operations<K, V>, state: SnapshotState) {
    this.client = client;
    this.formats = operations;
    this.#state = state;
  }

  /**
   * Reads of a part of it: of a view of the same store, or of the keys that begin with a prefix. See `at` of a store.
   *
   * @example
   * await using snapshot = db.snapshot();
   * const ada = await snapshot.at(users).get('ada');
   */
  at<K2 = Key, V2 = V>(place: Place<K2, V2>, options?: ViewOptions<K2, V2>): ReadView<K2, V2> {
    return new ReadView(this.client, new Operations(formatsAt(this.formats, place, options)), this.#state);
  }

  get(key: K, options?: WaitOptions): Promise<V | undefined> {
    return this.#submit(this.formats.get, key, undefined, options);
  }

  async getMany(keys: Iterable<K>, options?: WaitOptions): Promise<(V | undefined)[]> {
    return this.#submit(this.formats.getMany, undefined, [...several(keys)], options);
  }

  getEntry(key: K, options?: WaitOptions): Promise<Entry<V> | undefined> {
    return this.#submit(this.formats.getEntry, key, undefined, options);
  }

  has(key: K, options?: WaitOptions): Promise<boolean> {
    return this.#submit(this.formats.has, key, undefined, options);
  }

  async hasMany(keys: Iterable<K>, options?: WaitOptions): Promise<boolean[]> {
    checkOptions(options, WAIT);
    return Promise.all(Array.from(several(keys), (key) => this.has(key, options)));
  }

  keys(options: ScanOptions<K> = {}): RangeIterator<K, K> {
    return this.#scan('keys', options);
  }

  values(options: ScanOptions<K> = {}): RangeIterator<K, V> {
    return this.#scan('values', options);
  }

  entries(options: ScanOptions<K> = {}): RangeIterator<K, [K, V]> {
    return this.#scan('entries', options);
  }

  /** All entries, in the order of their keys: `for await (const [key, value] of db)`. */
  [Symbol.asyncIterator](): RangeIterator<K, [K, V]> {
    return this.entries();
  }

  async count(range: CountOptions<K> = {}): Promise<number> {
    return this.countBytes(encodeRange(range, this.formats.keys, COUNT), range.signal);
  }

  /** @internal How many keys a range of bytes has. */
  async countBytes(range: ByteRange, signal?: AbortSignal): Promise<number> {
    const cursor = this.#cursor(scanCount, range, { signal });
    let count = 0;
    try {
      for (let batch = await cursor?.take(); batch !== undefined; batch = await cursor?.take()) {
        count += batch.count;
        signal?.throwIfAborted();
      }
    } finally {
      // The engine keeps a scan open that failed.
      cursor?.close();
    }
    return count;
  }

  /** @internal Scans a range of bytes. */
  scanBytes<T>(as: keyof typeof SCANS, range: ByteRange, course: Course): RangeIterator<K, T> {
    const { operations, unpack } = SCANS[as];
    const items = unpack(this.formats) as unknown as Unpack<T>;
    const open = (part: ByteRange, on: Course): BatchSource | undefined => this.#cursor(operations, part, on);
    return new ScanIterator({ range, course, keys: this.formats.keys, open }, items);
  }

  #scan<T>(as: keyof typeof SCANS, options: ScanOptions<K>): RangeIterator<K, T> {
    return this.scanBytes(as, encodeRange(options, this.formats.keys, SCAN), options);
  }

  /** Opens a scan; undefined for a scan without results. */
  #cursor(operations: ScanOperations, range: ByteRange, course: Course): BatchSource | undefined {
    const { reverse = false, limit, signal } = course;
    checkLimit(limit);
    this.#ensureOpen();
    signal?.throwIfAborted();
    if (range.empty || limit === 0) return undefined;
    const batchBytes = operations === scanCount ? COUNT_BATCH : firstBatchBytes(limit);
    const { number: snapshot, taken } = this.#state;
    const request = { range, reverse, limit, snapshot, batchBytes, ...operations.parts };
    const kept = this.client.keeper?.batch(request);
    return kept === undefined ? new Cursor(this.client, operations, request, taken) : new KeptBatch(kept);
  }

  #submit<A, B, T>(operation: Operation<A, B, T>, key: A, value: B, options?: WaitOptions): Promise<T> {
    const { number, refusal, taken } = this.#state;
    if (refusal !== undefined) return Promise.reject(refusal);
    try {
      checkOptions(options, WAIT);
    } catch (error) {
      return Promise.reject(error);
    }
    const signal = options?.signal;
    const answer = this.client.submit(operation, key, value, levelOfSnapshot(number), signal);
    if (taken === undefined) return answer;
    return answer.catch(async (error) => {
      // The reason why there is no snapshot is more useful than an error that it does not exist.
      if (!signal?.aborted) await taken;
      throw error;
    });
  }

  #ensureOpen(): void {
    if (this.#state.refusal !== undefined) throw this.#state.refusal;
    this.client.ensureOpen();
  }
}
