/**
 * The state of a transaction: its own writes, the keys and ranges that it has read, and whether it has ended. Both stores use it.
 *
 * Invariant: every read of the snapshot is recorded before it is made; the transaction's own writes are read from here.
 */

import type { Formats } from '../codec/formats.ts';
import { type ByteRange, encodeDeletion, encodeRange, halfOpen, successor } from '../codec/range.ts';
import { ByteSink } from '../codec/sink.ts';
import { VarveError } from '../errors.ts';
import { checkLimit, checkOptions, LIFETIME, RANGE } from '../options.ts';
import { rawBytes } from '../protocol/frame-writer.ts';
import type { KeyRange, Lifetime } from '../types.ts';
import type { Reserved } from './derived.ts';
import { OverlayScan } from './overlay-scan.ts';
import { DELETED, type Own, OwnWrites } from './own-writes.ts';
import { ReadSet } from './read-set.ts';

/** The direction of a transaction's scan, and where it stops. */
interface ScanOrder {
  readonly reverse?: boolean | undefined;
  readonly limit?: number | undefined;
}

/** The state of one attempt, which all views of the transaction share. */
class Attempt {
  readonly own: OwnWrites;
  readonly reads = new ReadSet();
  readonly scans = new Map<OverlayScan, () => void>();
  isOver = false;

  constructor(sink: ByteSink) {
    this.own = new OwnWrites(sink);
  }
}

/** One attempt of a transaction, or a view of it. */
export class Workspace<K, V> {
  readonly #formats: Formats<K, V>;
  readonly #attempt: Attempt;

  /** Collects the writes in `into`, a sink of its own. */
  constructor(formats: Formats<K, V>, into: ByteSink | Attempt = new ByteSink(512)) {
    this.#formats = formats;
    this.#attempt = into instanceof Attempt ? into : new Attempt(into);
  }

  /** The same attempt with other keys and values. */
  at<K2, V2>(formats: Formats<K2, V2>): Workspace<K2, V2> {
    return new Workspace(formats, this.#attempt);
  }

  /** The same object for all views of the attempt. */
  get owner(): object {
    return this.#attempt;
  }

  /** A plain key, for a lookup here and then in the snapshot. */
  plain(key: K): K {
    return this.#formats.keys.plain(key);
  }

  set(key: K, value: V, options: Lifetime = {}): void {
    this.ensureOpen();
    checkOptions(options, LIFETIME);
    const { keys, values } = this.#formats;
    this.#attempt.own.set(keys, key, values, value, options);
  }

  /** Sets a key to a value that is encoded already. */
  setEncoded(key: K, value: Uint8Array, lifetime?: Lifetime): void {
    this.ensureOpen();
    this.#attempt.own.set(this.#formats.keys, key, rawBytes, value, lifetime);
  }

  /** A deletion has no options: `set` has no condition either, because the commit checks what the transaction has read. */
  delete(key: K, options: undefined): void {
    this.ensureOpen();
    checkOptions(options, {});
    this.#attempt.own.delete(this.#formats.keys, key);
  }

  deleteRange(range: KeyRange<K>): void {
    this.ensureOpen();
    const bytes = encodeDeletion(range, this.#formats.keys);
    if (bytes !== undefined) this.#attempt.own.deleteRange(bytes);
  }

  clear(): void {
    this.ensureOpen();
    this.#attempt.own.deleteRange(halfOpen(this.range({}, RANGE)));
  }

  /** Reserved keys, which `read` reads from the snapshot. */
  reserved<R>(read: (key: Uint8Array) => R): Reserved<R> {
    return {
      get: (key) => {
        this.#attempt.reads.key(key);
        return read(key);
      },
      set: (key, value) => this.#attempt.own.set(rawBytes, key, rawBytes, value),
      touches: (prefix) => this.#attempt.own.touches({ start: prefix, end: successor(prefix) }),
    };
  }

  /** The value of a key that the transaction itself wrote; undefined if the snapshot must be read, which is then recorded. */
  look(key: K): { readonly value: V | undefined } | undefined {
    const own = this.find(key);
    return own === undefined ? undefined : { value: this.valueOf(own) };
  }

  /** Whether a key is there after the transaction's writes; undefined if the snapshot must be read, which is then recorded. */
  has(key: K): boolean | undefined {
    const own = this.find(key);
    return own === undefined ? undefined : own !== DELETED;
  }

  /**
   * The transaction's own write of a key; undefined if the snapshot must be read, which is then recorded. Each write is a new object.
   */
  find(key: K): Own | undefined {
    this.ensureOpen();
    const bytes = this.encode(key);
    const own = this.#attempt.own.find(bytes);
    if (own === undefined) this.#attempt.reads.key(bytes);
    return own;
  }

  /** The value of an own write; undefined for a deletion. */
  valueOf(own: Own): V | undefined {
    return own === DELETED ? undefined : this.#attempt.own.valueOf(own, this.#formats.values);
  }

  /** The bytes of a key. */
  encode(key: K): Uint8Array {
    return this.#formats.keys.encode(key);
  }

  /** The bytes of a range; `known` has the options that the range may have. */
  range(range: KeyRange<K>, known: Readonly<Record<string, 1>>): ByteRange {
    return encodeRange(range, this.#formats.keys, known);
  }

  /** The writes until now, for the scans of an iterator: it showed later ones after a `seek`. */
  writes(): OwnWrites {
    return this.#attempt.own.copy();
  }

  /** Begins a scan over some of the writes; undefined for a scan without results. */
  scan(
    bounds: ByteRange,
    { reverse = false, limit }: ScanOrder,
    values: boolean,
    own: OwnWrites = this.writes(),
  ): OverlayScan | undefined {
    checkLimit(limit);
    this.ensureOpen();
    if (bounds.empty || limit === 0) return undefined;
    const ensureOpen = (): void => this.ensureOpen();
    const { reads, scans } = this.#attempt;
    return new OverlayScan(own, reads, { bounds, reverse, limit, values, ensureOpen, scans });
  }

  /** Records that a range is counted, if the snapshot's count is also the transaction's; returns whether it is. */
  countsAsSnapshot(bounds: ByteRange): boolean {
    this.ensureOpen();
    const halfOpenRange = halfOpen(bounds);
    if (bounds.empty) return true;
    if (this.#attempt.own.touches(halfOpenRange)) return false;
    this.#attempt.reads.range(halfOpenRange).finish();
    return true;
  }

  /** Accepts nothing more, and ends the scans that were left open. */
  close(): void {
    this.#attempt.isOver = true;
    for (const close of this.#attempt.scans.values()) close();
  }

  /** Accepts nothing more, and returns the batch to commit; undefined when nothing was written. Called once. */
  end(): Uint8Array | undefined {
    this.close();
    const { writer } = this.#attempt.own;
    if (writer.count === 0) return undefined;
    this.#attempt.reads.write(writer);
    return writer.view();
  }

  ensureOpen(): void {
    if (this.#attempt.isOver) {
      throw new VarveError(
        'VARVE_CLOSED',
        'The transaction has ended. Await all that its function does, and start another one.',
      );
    }
  }
}
