/**
 * The writes of a transaction, which its reads see before the store's entries.
 *
 * A batch collects the writes in the order of their calls, as any batch does. In addition a map has the state of each key:
 * deleted, or the place of its value in the bytes of the batch. Ranges show where the store's own keys are deleted.
 *
 *   ranges  ---[=====)--------[==)---      disjoint, ascending
 *   map        s  x  s     x               s: set, x: deleted. A range that is deleted takes the map's keys in it along.
 *
 * Invariant: the map and the ranges describe the result of applying the batch to the store in order.
 */

import type { KeyFormat } from '../codec/key-format.ts';
import { compareBytes } from '../codec/range.ts';
import { RESERVED } from '../codec/reserved-key.ts';
import type { ByteSink } from '../codec/sink.ts';
import type { ValueFormat } from '../codec/values.ts';
import { BatchWriter } from '../protocol/batch-writer.ts';
import type { Encoder } from '../protocol/frame-writer.ts';
import type { Lifetime } from '../types.ts';
import { OrderedMap } from './ordered-map.ts';
import type { HalfOpen } from './read-set.ts';

/** The place of a value in the batch, and its lifetime. */
export interface Own {
  readonly start: number;
  readonly end: number;
  readonly lifetime: Lifetime | undefined;
}

/** The end of the keys of users. */
const USERS_END = Uint8Array.of(RESERVED);

/** Stands for the value of a deleted key. */
export const DELETED: Own = { start: 0, end: 0, lifetime: undefined };

/** The writes in the range of a scan. They must not change meanwhile. */
export interface OwnView {
  /** The keys written in the range, in the order of the scan. */
  readonly rows: Iterator<readonly [Uint8Array, Own], undefined>;
  isDeleted(key: Uint8Array): boolean;
}

/** The writes of one transaction. */
export class OwnWrites {
  readonly #sink: ByteSink;
  readonly writer: BatchWriter;
  #map = new OrderedMap<Own>();
  #deleted: readonly HalfOpen[] = [];
  /** Whether a key of the store may be hidden by a deletion. */
  hides = false;

  /** Collects into `sink`. If that takes Blobs, read them before each look at a value, and before the commit. */
  constructor(sink: ByteSink, writer: BatchWriter = new BatchWriter(sink)) {
    this.#sink = sink;
    this.writer = writer;
  }

  /** The writes as they are now, to be read: later ones do not change them. */
  copy(): OwnWrites {
    const copy = new OwnWrites(this.#sink, this.writer);
    copy.#map = this.#map.copy();
    copy.#deleted = this.#deleted;
    copy.hides = this.hides;
    return copy;
  }

  set<K, V>(keys: Encoder<K>, key: K, values: Encoder<V>, value: V, lifetime?: Lifetime): void {
    const { writer } = this;
    writer.set(keys, key, values, value, lifetime);
    this.#map.set(this.#lastKey(), { start: writer.valueAt, end: writer.valueEnd, lifetime: writer.lifetime });
  }

  delete<K>(keys: KeyFormat<K>, key: K): void {
    this.writer.delete(keys, key);
    this.#map.set(this.#lastKey(), DELETED);
    this.hides = true;
  }

  deleteRange(range: HalfOpen): void {
    this.writer.deleteRange(range.start, range.end);
    this.#map.deleteRange(range.start, endOf(range));
    this.#deleted = united(this.#deleted, range);
    this.hides = true;
  }

  /** The transaction's write of a key; undefined if it did not write the key. */
  find(key: Uint8Array): Own | undefined {
    return this.#map.get(key) ?? (key[0] !== RESERVED && covers(this.#deleted, key) ? DELETED : undefined);
  }

  /** Whether all keys of a range that the store has are deleted. */
  isDeletedRange({ start, end }: HalfOpen): boolean {
    return this.#deleted.some((range) => compareBytes(range.start, start) <= 0 && compareEnds(end, range.end) <= 0);
  }

  /** Whether the transaction wrote in a range. */
  touches(range: HalfOpen): boolean {
    const written = this.#map.entries(range.start, endOf(range)).next().done !== true;
    return written || this.#deleted.some((deleted) => overlaps(deleted, range));
  }

  /** A value, in bytes of its own. */
  bytesOf(own: Own): Uint8Array {
    return this.#sink.bytes.slice(own.start, own.end);
  }

  /** A value. */
  valueOf<V>(own: Own, values: ValueFormat<V>): V {
    const bytes = this.bytesOf(own);
    return values.read(bytes, 0, bytes.length);
  }

  /** The writes in a range. */
  view(range: HalfOpen, reverse: boolean): OwnView {
    const rows = this.#map.entries(range.start, endOf(range), reverse);
    return { rows, isDeleted: (key) => covers(this.#deleted, key) };
  }

  #lastKey(): Uint8Array {
    return this.#sink.bytes.slice(this.writer.keyAt, this.writer.keyEnd);
  }
}

/** The end of a range; a range without an end stops before the reserved keys. */
function endOf({ end }: HalfOpen): Uint8Array {
  return end.length === 0 ? USERS_END : end;
}

/** Whether one of the ranges contains a key. */
function covers(ranges: readonly HalfOpen[], key: Uint8Array): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore((ranges[middle] as HalfOpen).end, key)) low = middle + 1;
    else high = middle;
  }
  const range = ranges[low];
  return range !== undefined && compareBytes(range.start, key) <= 0;
}

/** The ranges with one more added; ranges that overlap or touch it are merged with it. */
function united(ranges: readonly HalfOpen[], { start, end }: HalfOpen): readonly HalfOpen[] {
  const before: HalfOpen[] = [];
  const after: HalfOpen[] = [];
  for (const range of ranges) {
    if (range.end.length > 0 && compareBytes(range.end, start) < 0) before.push(range);
    else if (end.length > 0 && compareBytes(end, range.start) < 0) after.push(range);
    else {
      if (compareBytes(range.start, start) < 0) start = range.start;
      if (compareEnds(range.end, end) > 0) end = range.end;
    }
  }
  return [...before, { start, end }, ...after];
}

function overlaps(a: HalfOpen, b: HalfOpen): boolean {
  return !isBefore(a.end, b.start) && !isBefore(b.end, a.start);
}

/** Whether a range that ends at `end` ends at `key` or before. No bytes are the end of the store. */
function isBefore(end: Uint8Array, key: Uint8Array): boolean {
  return end.length > 0 && compareBytes(end, key) <= 0;
}

function compareEnds(a: Uint8Array, b: Uint8Array): number {
  if (a.length === 0 || b.length === 0) return b.length === 0 ? (a.length === 0 ? 0 : -1) : 1;
  return compareBytes(a, b);
}
