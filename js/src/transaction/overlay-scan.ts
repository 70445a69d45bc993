/**
 * A scan of a transaction: batches of the store's keys with the transaction's own writes laid over them.
 *
 *   store    b   d   f h |  m   p  |           batches, the last one is marked
 *   own        c   d'  x(f..h)   o             sets, and what is deleted
 *   result   b c   d'      m   o p
 *
 * Invariant: keys come in the order of the scan, each once, and keys that were handed out are recorded as read. Writes after the
 * scan's beginning do not change it.
 */

import { type ByteRange, compareBytes, halfOpen } from '../codec/range.ts';
import { ByteSink } from '../codec/sink.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import { DELETED, type Own, type OwnView, type OwnWrites } from './own-writes.ts';
import type { RangeRead, ReadSet } from './read-set.ts';

const NO_BYTES = new Uint8Array(0);
const NO_ENDS = new Uint32Array(0);
/** The batch that stands for the store when it need not be read. */
export const NOTHING_THERE: ScanBatch = {
  cursor: 0,
  count: 0,
  keys: NO_BYTES,
  keyEnds: NO_ENDS,
  values: NO_BYTES,
  valueEnds: NO_ENDS,
};

/** The range of a transaction's scan. */
interface OverlayRange {
  readonly bounds: ByteRange;
  readonly reverse: boolean;
  readonly limit: number | undefined;
  /** Whether values are read too. */
  readonly values: boolean;
  /** Throws once the transaction has ended. */
  readonly ensureOpen: () => void;
  /** The scans that the end of the transaction must end, each with what ends it. */
  readonly scans: Map<OverlayScan, () => void>;
}

/** One running scan. */
export class OverlayScan {
  /** The range to read from the store: the range of the call, which was read once. */
  readonly bounds: ByteRange;
  readonly reverse: boolean;
  /** Whether the store must be asked. */
  readonly asksStore: boolean;
  /** How many keys of the store are needed at most; undefined if that is unknown. */
  readonly limit: number | undefined;
  readonly #own: OwnWrites;
  readonly #view: OwnView;
  readonly #isPlain: boolean;
  readonly #read: RangeRead | undefined;
  readonly #values: boolean;
  readonly #ensureOpen: () => void;
  readonly #scans: OverlayRange['scans'];
  #left: number;
  #row: readonly [Uint8Array, Own] | undefined;

  constructor(own: OwnWrites, reads: ReadSet, { bounds, reverse, limit, values, ensureOpen, scans }: OverlayRange) {
    const range = halfOpen(bounds);
    this.bounds = bounds;
    this.#own = own;
    this.reverse = reverse;
    this.#values = values;
    this.#ensureOpen = ensureOpen;
    this.#scans = scans;
    this.#left = limit ?? Number.POSITIVE_INFINITY;
    this.#isPlain = !own.touches(range);
    this.#view = own.view(range, reverse);
    this.#advance();
    this.asksStore = limit !== 0 && !own.isDeletedRange(range);
    this.limit = own.hides ? undefined : limit;
    this.#read = this.asksStore ? reads.range(range, reverse) : undefined;
  }

  /** Merges the transaction's writes into a batch of the store; `cursor` of the result is 0 when the scan is over. */
  add(batch: ScanBatch): ScanBatch {
    if (this.#isPlain && batch.count <= this.#left) {
      this.#left -= batch.count;
      return this.#left > 0 ? batch : { ...batch, cursor: 0 };
    }
    const rows = new Rows(this.#values);
    let start = 0;
    let valueStart = 0;
    for (let i = 0; i < batch.count && this.#left > 0; i++) {
      const end = batch.keyEnds[i] as number;
      const valueEnd = batch.valueEnds[i] ?? 0;
      const key = batch.keys.subarray(start, end);
      const isReplaced = this.#addOwnUpTo(key, rows);
      if (!isReplaced && this.#left > 0 && !this.#view.isDeleted(key)) {
        rows.add(key, batch.values.subarray(valueStart, valueEnd));
        this.#left--;
      }
      start = end;
      valueStart = valueEnd;
    }
    if (batch.cursor === 0) this.#addOwnUpTo(undefined, rows);
    return rows.batch(this.#left > 0 ? batch.cursor : 0);
  }

  /** Key `i` of a batch is handed out. */
  reached(batch: ScanBatch, i: number): void {
    this.#ensureOpen();
    this.#read?.reached(batch, i);
  }

  /** The caller knows that the scan has ended. */
  finish(): void {
    this.#ensureOpen();
    // If the limit ended the scan, nothing was read about the keys that follow.
    if (this.#left > 0) this.#read?.finish();
  }

  /** Registers what ends the scan when the transaction ends. */
  atEnd(close: () => void): void {
    this.#scans.set(this, close);
  }

  /** The scan reads nothing more. Keys of its last batch may still be handed out; then it is called again after them. */
  close(): void {
    this.#scans.delete(this);
    this.#read?.close();
  }

  /** Adds the transaction's rows up to and including `key`; returns true if the transaction has a row for `key` itself. */
  #addOwnUpTo(key: Uint8Array | undefined, rows: Rows): boolean {
    for (let row = this.#row; row !== undefined && this.#left > 0; row = this.#row) {
      const order = key === undefined ? -1 : this.reverse ? compareBytes(key, row[0]) : compareBytes(row[0], key);
      if (order > 0) return false;
      if (row[1] !== DELETED) {
        rows.add(row[0], this.#values ? this.#own.bytesOf(row[1]) : NO_BYTES);
        this.#left--;
      }
      this.#advance();
      if (order === 0) return true;
    }
    return false;
  }

  #advance(): void {
    this.#row = this.#view.rows.next().value;
  }
}

/** Builds a batch, row by row. */
class Rows {
  readonly #keys = new ByteSink(1024);
  readonly #values = new ByteSink(1024);
  readonly #keyEnds: number[] = [];
  readonly #valueEnds: number[] = [];
  readonly #hasValues: boolean;

  constructor(hasValues: boolean) {
    this.#hasValues = hasValues;
  }

  add(key: Uint8Array, value: Uint8Array): void {
    this.#keys.append(key);
    this.#keyEnds.push(this.#keys.at);
    if (!this.#hasValues) return;
    this.#values.append(value);
    this.#valueEnds.push(this.#values.at);
  }

  batch(cursor: number): ScanBatch {
    return {
      cursor,
      count: this.#keyEnds.length,
      keys: this.#keys.copy(),
      keyEnds: Uint32Array.from(this.#keyEnds),
      values: this.#values.copy(),
      valueEnds: Uint32Array.from(this.#valueEnds),
    };
  }
}
