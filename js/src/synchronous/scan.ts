/**
 * Scans of the synchronous store: iterators over batches.
 *
 * A batch is copied out of the engine once; its keys are decoded together and values are views of the copy. The first
 * batch is small and fetched when the scan is called, so that most scans are over before the first step; later batches
 * grow.
 *
 * Invariant: a scan sees the store as it was when it was called. It is closed in the engine when it ends, when the loop
 * is left, or when the iterator is garbage collected.
 */

import type { KeyFormat } from '../codec/key-format.ts';
import { type ByteRange, rangeFrom } from '../codec/range.ts';
import type { ValueFormat } from '../codec/values.ts';
import { checkLimit } from '../options.ts';
import { type Ends, readScanBatch, type ScanBatch } from '../protocol/scan.ts';
import { whenCollected } from '../runtime/collected.ts';
import type { Course } from '../store/scan-iterator.ts';
import { NOTHING_THERE, type OverlayScan } from '../transaction/overlay-scan.ts';
import type { SyncRangeIterator } from '../types.ts';
import type { EngineStore } from '../wasm/store.ts';
import type { Slab } from './slab.ts';

/** Size of the first batch, in bytes; each next one is four times as large. */
export const BATCH_BYTES_FIRST = 16 * 1024;
const BATCH_BYTES_MAX = 512 * 1024;

const NOTHING = new Uint8Array(0);

/** The parts of an entry that each step returns. */
export const Want = { keys: 1, values: 2, entries: 3 } as const;

/** The source of a scan's batches, and the formats of its bytes. */
export interface ScanSource<K, V> {
  readonly store: EngineStore;
  readonly keys: KeyFormat<K>;
  readonly values: ValueFormat<V>;
  /** Small batches are copied here. */
  readonly slab: Slab;
  /** Throws once the store is closed. */
  ensureOpen(): void;
}

const collected = whenCollected<{ store: EngineStore; cursor: number }>(({ store, cursor }) => store.closeScan(cursor));

/** A scan that was opened: the number of the engine's, or 0 if it reads nothing from the engine, and the overlay of a transaction. */
export interface Opened {
  readonly cursor: number;
  readonly overlay?: OverlayScan | undefined;
}

/** The range that an iterator goes through. */
interface SyncWalk {
  readonly range: ByteRange;
  readonly course: Course;
  /** Opens a scan of a part of the range. */
  open(part: ByteRange, course: Course): Opened;
}

/** An iterator over keys, values or entries. */
export class SyncScan<K, V, T> implements SyncRangeIterator<K, T> {
  readonly #source: ScanSource<K, V>;
  readonly #want: number;
  readonly #walk: SyncWalk;
  readonly #course: Course;
  #cursor = 0;
  #batchBytes = BATCH_BYTES_FIRST;
  #keys: K[] = [];
  #values: Uint8Array = NOTHING;
  #valueEnds: Ends = [];
  #valueStart = 0;
  #at = 0;
  #count = 0;
  /** Items of the batches before. */
  #passed = 0;
  /** The overlay that a transaction puts over the engine's batches, and the last of these batches. */
  #overlay: OverlayScan | undefined;
  #signal: AbortSignal | undefined;
  #isClosed = false;
  #batch: ScanBatch = NOTHING_THERE;

  constructor(source: ScanSource<K, V>, want: number, walk: SyncWalk) {
    this.#source = source;
    this.#want = want;
    this.#walk = walk;
    // A copy: the options of a caller may be inherited, and may change later.
    const { reverse, limit, signal } = walk.course;
    this.#course = { reverse, limit, signal };
    this.#signal = signal;
    this.#begin(walk.range);
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<T, undefined> {
    if (this.#signal?.aborted) {
      const { reason } = this.#signal;
      this.#signal = undefined;
      this.return();
      throw reason;
    }
    while (this.#at === this.#count) {
      if (this.#cursor === 0) return this.#ended();
      this.#source.ensureOpen();
      this.#fetch();
    }
    const at = this.#at++;
    this.#overlay?.reached(this.#batch, at);
    if (this.#want === Want.keys) return { value: this.#keys[at] as unknown as T, done: false };
    const start = this.#valueStart;
    const end = this.#valueEnds[at] as number;
    this.#valueStart = end;
    const value = this.#source.values.read(this.#values, start, end);
    return { value: (this.#want === Want.values ? value : [this.#keys[at], value]) as unknown as T, done: false };
  }

  nextv(size: number): T[] {
    checkLimit(size, 'size');
    const found: T[] = [];
    while (found.length < size) {
      const { done, value } = this.next();
      if (done) break;
      found.push(value);
    }
    return found;
  }

  seek(key: K): void {
    const part = rangeFrom(this.#walk.range, this.#source.keys.encode(key), this.#course.reverse);
    if (this.#isClosed) return;
    this.#close();
    this.#passed += this.#at;
    this.#at = this.#count = 0;
    this.#batchBytes = BATCH_BYTES_FIRST;
    this.#begin(part);
  }

  /** Ends the scan; `for...of` calls it when the loop is left. */
  return(): IteratorResult<T, undefined> {
    this.#isClosed = true;
    this.#close();
    this.#at = this.#count;
    return { value: undefined, done: true };
  }

  #begin(part: ByteRange): void {
    const { limit } = this.#course;
    const left = limit && limit - this.#passed;
    const { cursor, overlay } = this.#walk.open(part, { ...this.#course, limit: left });
    this.#cursor = cursor;
    this.#overlay = overlay;
    overlay?.atEnd(() => this.return());
    if (cursor === 0) {
      if (overlay !== undefined) this.#unpack(overlay.add(NOTHING_THERE));
      return;
    }
    this.#fetch();
    if (this.#cursor !== 0) collected.register(this, { store: this.#source.store, cursor }, this);
  }

  #ended(): IteratorResult<T, undefined> {
    this.#overlay?.finish();
    this.#close();
    return { value: undefined, done: true };
  }

  #close(): void {
    this.#overlay?.close();
    if (this.#cursor === 0) return;
    this.#source.store.closeScan(this.#cursor);
    this.#finish();
  }

  #fetch(): void {
    try {
      this.#read();
    } catch (error) {
      // The engine keeps a scan open that failed, and knows nothing of a codec that threw.
      this.#close();
      throw error;
    }
  }

  #read(): void {
    const { store, slab } = this.#source;
    const status = store.fault.guarded(() => store.exports.varve_scan_next(store.h, this.#cursor, this.#batchBytes));
    if (store.check(status) === 0) this.#finish();
    this.#batchBytes = Math.min(BATCH_BYTES_MAX, this.#batchBytes * 4);
    const { out } = store.memory.fresh();
    const at = out[0] as number;
    const bytes = slab.copy(store.memory, at, at + (out[1] as number));
    const wantsValues = (this.#want & Want.values) !== 0;
    const hasKeys = this.#overlay !== undefined || (this.#want & Want.keys) !== 0;
    const batch = readScanBatch(bytes, 0, bytes.length, hasKeys, wantsValues);
    if (this.#overlay === undefined) {
      this.#unpack(batch);
      return;
    }
    const laid = this.#overlay.add(batch);
    this.#unpack(laid);
    if (laid.cursor === 0) this.#close();
  }

  #unpack(batch: ScanBatch): void {
    const wantsKeys = (this.#want & Want.keys) !== 0;
    // First: a codec may throw.
    this.#keys = wantsKeys ? this.#source.keys.readAll(batch.keys, batch.keyEnds) : [];
    this.#batch = batch;
    this.#passed += this.#at;
    this.#count = batch.count;
    this.#at = 0;
    this.#values = batch.values;
    this.#valueEnds = batch.valueEnds;
    this.#valueStart = 0;
  }

  #finish(): void {
    if (this.#cursor !== 0) collected.unregister(this);
    this.#cursor = 0;
  }
}
