/**
 * The keys that a transaction has read in its snapshot, and the ranges as far as they were walked.
 *
 * Invariant: everything that the transaction read from the snapshot is in it. The transaction's own writes are not, because they
 * are read without the snapshot.
 */

import { justAfter } from '../codec/range.ts';
import type { BatchWriter } from '../protocol/batch-writer.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import { OrderedMap } from './ordered-map.ts';

/** Keys from `start` to before `end`; no bytes mean an open side. */
export interface HalfOpen {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
}

/** A range that is being walked: its keys up to the last one that was handed out have been read. */
export class RangeRead {
  readonly #range: HalfOpen;
  readonly #reverse: boolean;
  /** The batch of the last key that was handed out; that key alone, once the scan is over. */
  #batch: Pick<ScanBatch, 'keys' | 'keyEnds'> | undefined;
  #at = 0;
  #isWhole = false;

  constructor(range: HalfOpen, reverse: boolean) {
    this.#range = range;
    this.#reverse = reverse;
  }

  /** Key `i` of a batch was handed out. */
  reached(batch: ScanBatch, i: number): void {
    this.#batch = batch;
    this.#at = i;
  }

  /** The caller knows that there are no more keys. */
  finish(): void {
    this.#isWhole = true;
    this.#batch = undefined;
  }

  /** The scan goes no further: only the last key is kept of its batch. */
  close(): void {
    const keys = this.#last?.slice();
    this.#batch = keys && { keys, keyEnds: [keys.length] };
    this.#at = 0;
  }

  /** Appends the range to a batch, unless nothing of it was read. */
  write(writer: BatchWriter): void {
    const { start, end } = this.#range;
    const key = this.#last;
    if (this.#isWhole) writer.readRange(start, end);
    else if (key === undefined) return;
    else if (this.#reverse) writer.readRange(key, end);
    else writer.readRange(start, justAfter(key));
  }

  /** The last key that was handed out. */
  get #last(): Uint8Array | undefined {
    if (this.#batch === undefined) return undefined;
    const { keys, keyEnds } = this.#batch;
    return keys.subarray(this.#at === 0 ? 0 : keyEnds[this.#at - 1], keyEnds[this.#at]);
  }
}

/** The keys and ranges of one transaction. */
export class ReadSet {
  readonly #keys = new OrderedMap<true>();
  readonly #ranges: RangeRead[] = [];

  key(key: Uint8Array): void {
    this.#keys.set(key, true);
  }

  range(range: HalfOpen, reverse = false): RangeRead {
    const read = new RangeRead(range, reverse);
    this.#ranges.push(read);
    return read;
  }

  /** Appends all keys and ranges to a batch. */
  write(writer: BatchWriter): void {
    for (const [key] of this.#keys.entries(NOTHING, undefined)) writer.readKey(key);
    for (const range of this.#ranges) range.write(writer);
  }
}

const NOTHING = new Uint8Array(0);
