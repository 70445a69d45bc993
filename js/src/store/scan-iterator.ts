/**
 * The iterators that `keys()`, `values()` and `entries()` return.
 *
 * Invariant: items come in order, each once, also when `next()` is called again before the promise of the last call is resolved. The
 * cursor is closed when the items end, when the loop is left, on an error, and when the signal aborts. It is also closed when an
 * iterator that was never finished is garbage collected.
 */

import type { Operations } from '../client/operations.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import { whenCollected } from '../runtime/collected.ts';
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

/** Iterates over the batches of a cursor; without a cursor, over nothing. */
export class ScanIterator<T> extends StepIterator<T> {
  #cursor: BatchSource | undefined;
  readonly #unpack: Unpack<T>;
  #item: (i: number) => T = () => {
    throw new RangeError('no batch yet');
  };
  #at = 0;
  #count = 0;
  /** The last step that had to wait; steps after it wait for it. */
  #last: Promise<unknown> | undefined;
  #unwatch: (() => void) | undefined;

  constructor(cursor: BatchSource | undefined, unpack: Unpack<T>, signal: AbortSignal | undefined) {
    super();
    this.#cursor = cursor;
    this.#unpack = unpack;
    if (cursor === undefined) return;
    collected.register(this, cursor, this);
    if (signal === undefined) return;
    // References only the cursor, so that the signal does not keep the iterator alive.
    const abort = (): void => cursor.fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#unwatch = () => signal.removeEventListener('abort', abort);
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#last === undefined && this.#at < this.#count && this.#cursor?.error === undefined) {
      try {
        return Promise.resolve({ done: false, value: this.#item(this.#at++) });
      } catch (error) {
        return this.#failed(error);
      }
    }
    return this.#queue(() => this.#step());
  }

  /** Runs a step after the ones before it. */
  #queue(step: () => Promise<IteratorResult<T, undefined>>): Promise<IteratorResult<T, undefined>> {
    const result = this.#last === undefined ? step() : this.#last.then(step);
    const ended: Promise<unknown> = result
      .catch(() => undefined)
      .then(() => {
        if (this.#last === ended) this.#last = undefined;
      });
    this.#last = ended;
    return result;
  }

  async #step(): Promise<IteratorResult<T, undefined>> {
    try {
      const error = this.#cursor?.error;
      if (error !== undefined) throw error;
      while (this.#at >= this.#count) {
        const batch = await this.#cursor?.take();
        if (batch === undefined || this.#cursor === undefined) {
          this.close();
          return DONE;
        }
        this.#item = this.#unpack(batch);
        this.#at = 0;
        this.#count = batch.count;
      }
      return { done: false, value: this.#item(this.#at++) };
    } catch (error) {
      return await this.#failed(error);
    }
  }

  #failed(error: unknown): Promise<never> {
    this.close();
    return Promise.reject(error);
  }

  protected close(): void {
    const cursor = this.#cursor;
    if (cursor === undefined) return;
    this.#cursor = undefined;
    this.#at = this.#count = 0;
    this.#unwatch?.();
    collected.unregister(this);
    cursor.close();
  }
}
