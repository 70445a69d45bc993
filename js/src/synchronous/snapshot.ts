/**
 * A snapshot of the synchronous store.
 *
 * Invariant: the engine releases it exactly once: when it is closed, or when it is garbage collected. Iterators that began before
 * continue to their ends.
 */

import type { Reads } from '../api.ts';
import { VarveError } from '../errors.ts';
import { checkWait } from '../options.ts';
import { whenCollected } from '../runtime/collected.ts';
import { dispose } from '../runtime/dispose.ts';
import type { CountOptions, Entry, ScanOptions, WaitOptions } from '../types.ts';
import { type SnapshotReads, SyncReadView } from './reads.ts';

const collected = whenCollected<() => void>((release) => release());

/** The store as it was when `store.snapshot()` was called. It has all the reads of a store, and no writes. */
export class SyncSnapshot<K, V> extends SyncReadView<K, V> implements Reads<K, V>, Disposable {
  /** The sequence of the last write that it sees. */
  readonly sequence: number;
  /** @internal Its number in the engine. */
  readonly number: number;
  readonly #reads: SnapshotReads<K, V>;
  readonly #release: () => void;
  #closed = false;

  /** @internal Made by `SyncStore.snapshot`. `release` releases it in the engine, unless the store is closed. */
  constructor(sequence: number, number: number, reads: SnapshotReads<K, V>, release: () => void) {
    super();
    this.sequence = sequence;
    this.number = number;
    this.#reads = reads;
    this.#release = release;
    collected.register(this, release, this);
  }

  get(key: K, options?: WaitOptions): V | undefined {
    return this.getEntry(key, options)?.value;
  }

  getEntry(key: K, options?: WaitOptions): Entry<V> | undefined {
    checkWait(options);
    return this.#open().entry(key, this.number);
  }

  has(key: K, options?: WaitOptions): boolean {
    checkWait(options);
    return this.#open().has(key, this.number);
  }

  /** @internal */
  scan<T>(options: ScanOptions<K>, want: number): IterableIterator<T> {
    return this.#open().scans.scan(options, want, this.number);
  }

  count(range: CountOptions<K> = {}): number {
    return this.#open().scans.count(range, this.number);
  }

  /** Closes the snapshot; every later read throws `VARVE_CLOSED`. A second call has no further effect. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    collected.unregister(this);
    this.#release();
  }

  /** `close()`, for `using`. */
  [dispose](): void {
    this.close();
  }

  #open(): SnapshotReads<K, V> {
    if (this.#closed) throw new VarveError('VARVE_CLOSED', 'The snapshot is closed. Take a new one.');
    return this.#reads;
  }
}
