/**
 * The iterators that `keys()`, `values()` and `entries()` return.
 *
 * Invariant: items come in order, each once, also when `next()` is called again before the promise of the last call is resolved. The
 * cursor is closed when the items end, when the loop is left, on an error, and when the signal aborts. It is also closed when an
 * iterator that was never finished is garbage collected.
 */

import type { Operations } from '../client/operations.ts';
import type { KeyFormat } from '../codec/key-format.ts';
import { type ByteRange, rangeFrom } from '../codec/range.ts';
import { checkLimit } from '../options.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import { whenCollected } from '../runtime/collected.ts';
import type { RangeIterator, ScanOptions } from '../types.ts';
import type { BatchSource } from './cursor.ts';
import { DONE, StepIterator } from './step-iterator.ts';

/** Makes the items of a batch; `item(i)` is called once for each `i`, in order. */
export type Unpack<T> = (batch: ScanBatch) => (i: number) => T;

/** The keys of a batch, decoded together. */
export function keysOf<K, V>({ keys }: Operations<K, V>): Unpack<K> {
  return (batch) => {
    const all = keys.readAll(batch.keys, batch.keyEnds);
    return (i) => all[i] as K;
  };
}

/** The values of a batch, each decoded when it is taken. */
export function valuesOf<K, V>({ values }: Operations<K, V>): Unpack<V> {
  return ({ values: bytes, valueEnds }) =>
    (i) =>
      values.read(bytes, i === 0 ? 0 : (valueEnds[i - 1] as number), valueEnds[i] as number);
}

/** Keys with their values. */
export function entriesOf<K, V>(operations: Operations<K, V>): Unpack<[K, V]> {
  const [keys, values] = [keysOf(operations), valuesOf(operations)];
  return (batch) => {
    const [key, value] = [keys(batch), values(batch)];
    return (i) => [key(i), value(i)];
  };
}

const collected = whenCollected<BatchSource>((cursor) => cursor.close());

/** The direction of a scan, and where it stops. */
export type Course = Pick<ScanOptions, 'reverse' | 'limit' | 'signal'>;

/** The range that an iterator goes through. */
interface Walk<K> {
  readonly range: ByteRange;
  readonly course: Course;
  readonly keys: Pick<KeyFormat<K>, 'encode'>;
  /** Opens a scan of a part of the range; undefined for a scan without results. */
  open(part: ByteRange, course: Course): BatchSource | undefined;
}

/** Iterates over the batches of a cursor. */
export class ScanIterator<K, T> extends StepIterator<T> implements RangeIterator<K, T> {
  readonly #walk: Walk<K>;
  readonly #course: Course;
  readonly #unpack: Unpack<T>;
  /** The part of the range that is opened by the next step. */
  #sought: ByteRange | undefined;
  #isClosed = false;
  #cursor: BatchSource | undefined;
  /** Item `i` of the batch; of none before the first batch. */
  #item: (i: number) => T = () => undefined as T;
  #at = 0;
  #count = 0;
  /** Items of the batches before. */
  #passed = 0;
  /** The last step that had to wait; steps after it wait for it. */
  #last: Promise<unknown> | undefined;
  #unwatch: (() => void) | undefined;

  constructor(walk: Walk<K>, unpack: Unpack<T>) {
    super();
    // A copy: the options of a caller may be inherited, and may change later.
    const { reverse, limit, signal } = walk.course;
    this.#course = { reverse, limit, signal };
    this.#walk = walk;
    this.#unpack = unpack;
    this.#begin(walk.range);
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#last === undefined && this.#at < this.#count && this.#cursor?.error === undefined) {
      try {
        return Promise.resolve({ done: false, value: this.#item(this.#at++) });
      } catch (error) {
        this.#end();
        return Promise.reject(error);
      }
    }
    return this.#queue(async () => ((await this.#fill()) ? { done: false, value: this.#item(this.#at++) } : DONE));
  }

  async nextv(size: number): Promise<T[]> {
    checkLimit(size, 'size');
    return this.#queue(async () => {
      const found: T[] = [];
      while (found.length < size && (await this.#fill())) {
        while (found.length < size && this.#at < this.#count) found.push(this.#item(this.#at++));
      }
      return found;
    });
  }

  toArray(): Promise<T[]> {
    return this.nextv(Number.MAX_SAFE_INTEGER);
  }

  seek(key: K): void {
    const { range, keys } = this.#walk;
    const part = rangeFrom(range, keys.encode(key), this.#course.reverse);
    void this.#queue(async () => {
      if (this.#isClosed) return;
      this.#end();
      this.#sought = part;
    });
  }

  /** Runs a step after the ones before it. An error ends the scan. */
  #queue<R>(step: () => Promise<R>): Promise<R> {
    const result = (this.#last === undefined ? step() : this.#last.then(step)).catch((error) => {
      this.#end();
      throw error;
    });
    const ended: Promise<unknown> = result
      .catch(() => undefined)
      .then(() => {
        if (this.#last === ended) this.#last = undefined;
      });
    this.#last = ended;
    return result;
  }

  /** Whether there is an item to take, once a batch that is needed is there. */
  async #fill(): Promise<boolean> {
    if (this.#sought !== undefined) this.#begin(this.#sought);
    const error = this.#cursor?.error;
    if (error !== undefined) throw error;
    while (this.#at >= this.#count) {
      const batch = await this.#cursor?.take();
      if (batch === undefined || this.#cursor === undefined) {
        this.#end();
        return false;
      }
      this.#item = this.#unpack(batch);
      this.#passed += this.#count;
      this.#at = 0;
      this.#count = batch.count;
    }
    return true;
  }

  #begin(part: ByteRange): void {
    const { limit, signal } = this.#course;
    this.#sought = undefined;
    const left = limit && limit - this.#passed;
    const cursor = this.#walk.open(part, { ...this.#course, limit: left });
    if (cursor === undefined) return;
    this.#cursor = cursor;
    collected.register(this, cursor, this);
    if (signal === undefined) return;
    // References only the cursor, so that the signal does not keep the iterator alive.
    const abort = (): void => cursor.fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#unwatch = () => signal.removeEventListener('abort', abort);
  }

  /** Ends the scan; `seek` may begin another one. */
  #end(): void {
    this.#passed += this.#at;
    this.#at = this.#count = 0;
    const cursor = this.#cursor;
    if (cursor === undefined) return;
    this.#cursor = undefined;
    this.#unwatch?.();
    collected.unregister(this);
    cursor.close();
  }

  protected close(): void {
    this.#isClosed = true;
    this.#sought = undefined;
    this.#end();
  }
}
