/**
 * A snapshot of the synchronous store.
 *
 * Invariant: the engine releases it exactly once: when it is closed, or when it is garbage collected. Iterators that began before
 * continue to their ends.
 */

import type { Place, Reads } from '../api.ts';
import { formatsAt } from '../codec/formats.ts';
import { VarveError } from '../errors.ts';
import { checkWait } from '../options.ts';
import { whenCollected } from '../runtime/collected.ts';
import { dispose } from '../runtime/dispose.ts';
import type { CountOptions, Entry, Key, ScanOptions, SyncRangeIterator, ViewOptions, WaitOptions } from '../types.ts';
import { type SnapshotReads, SyncReader } from './reads.ts';

const collected = whenCollected<() => void>((release) => release());

/** The state of a snapshot. */
interface SnapshotState {
  /** Its number in the engine. */
  readonly number: number;
  isClosed: boolean;
  /** Kept from being collected, which would close it, while there are views of it. */
  owner?: object;
}

/** Reads of a snapshot, or of a part of it. */
export class SyncReadView<K, V> extends SyncReader<K, V> implements Reads<K, V> {
  readonly #reads: SnapshotReads<K, V>;
  readonly #state: SnapshotState;

  /** @internal */
  constructor(reads: SnapshotReads<K, V>, state: SnapshotState) {
    super();
    this.#reads = reads;
    this.#state = state;
  }

  /** Reads of a part of it: of a view of the same store, or of the keys that begin with a prefix. See `at` of `varve`. */
  at<K2 = Key, V2 = V>(place: Place<K2, V2>, options?: ViewOptions<K2, V2>): SyncReadView<K2, V2> {
    return new SyncReadView(this.#reads.at(formatsAt(this.#reads.formats, place, options)), this.#state);
  }

  get(key: K, options?: WaitOptions): V | undefined {
    return this.getEntry(key, options)?.value;
  }

  getEntry(key: K, options?: WaitOptions): Entry<V> | undefined {
    checkWait(options);
    return this.#open().entry(key, this.#state.number);
  }

  has(key: K, options?: WaitOptions): boolean {
    checkWait(options);
    return this.#open().has(key, this.#state.number);
  }

  /** @internal */
  scan<T>(options: ScanOptions<K>, want: number): SyncRangeIterator<K, T> {
    return this.#open().scans.scan(options, want, this.#state.number);
  }

  count(range: CountOptions<K> = {}): number {
    return this.#open().scans.count(range, this.#state.number);
  }

  #open(): SnapshotReads<K, V> {
    if (this.#state.isClosed) throw new VarveError('VARVE_CLOSED', 'The snapshot is closed. Take a new one.');
    return this.#reads;
  }
}

/** The store as it was when `store.snapshot()` was called. It has all the reads of a store, and no writes. */
export class SyncSnapshot<K, V> extends SyncReadView<K, V> implements Disposable {
  /** The sequence of the last write that it sees. */
  readonly sequence: number;
  /** @internal Its number in the engine. */
  readonly number: number;
  readonly #release: () => void;
  readonly #state: SnapshotState;

  /** @internal Made by `snapshot()`. `release` releases it in the engine, unless the store is closed. */
  constructor(sequence: number, number: number, reads: SnapshotReads<K, V>, release: () => void) {
    const state: SnapshotState = { number, isClosed: false };
    super(reads, state);
    state.owner = this;
    this.sequence = sequence;
    this.number = number;
    this.#release = release;
    this.#state = state;
    collected.register(this, release, this);
  }

  /** Closes the snapshot; every later read throws `VARVE_CLOSED`. A second call has no further effect. */
  close(): void {
    if (this.#state.isClosed) return;
    this.#state.isClosed = true;
    collected.unregister(this);
    this.#release();
  }

  /** `close()`, for `using`. */
  [dispose](): void {
    this.close();
  }
}
