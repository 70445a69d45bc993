/**
 * Transactions of the synchronous store.
 *
 * Within one turn nobody else writes, so a transaction runs without an interruption. It reads a snapshot with its own writes laid
 * over it, and its writes are one batch at its end. Only its own function could write directly to the store meanwhile. Therefore the
 * commit checks the keys and ranges that the transaction read; on a conflict the function runs again.
 *
 * Invariant: nothing is written before the function has returned, and then everything or nothing.
 */

import type { Place, TransactionWrites } from '../api.ts';
import { formatsAt } from '../codec/formats.ts';
import { itemOf } from '../codec/item.ts';
import type { ByteRange } from '../codec/range.ts';
import { invalid } from '../errors.ts';
import { COUNT, checkOptions, checkWait, durabilityOf, LIFETIME, SCAN, TRANSACTION } from '../options.ts';
import { EngineConflict, namedConflict } from '../protocol/conflict.ts';
import { upgradeOf, VERSION_KEY, versionBytes } from '../protocol/version.ts';
import type { Course } from '../store/scan-iterator.ts';
import { overtaken } from '../transaction/again.ts';
import { DERIVED_KEY, markWritten, type Reserved } from '../transaction/derived.ts';
import { lifetimeOf } from '../transaction/lifetime.ts';
import { checkRetries, lastConflict, RETRIES_DEFAULT } from '../transaction/retry.ts';
import { Workspace } from '../transaction/workspace.ts';
import type {
  CountOptions,
  Durability,
  Key,
  KeyRange,
  Lifetime,
  OldValue,
  Receipt,
  ScanOptions,
  SyncRangeIterator,
  TransactionOptions,
  UpdateLifetime,
  UpgradeVersions,
  ViewOptions,
  WaitOptions,
} from '../types.ts';
import { type Lay, type SnapshotReads, SyncReader } from './reads.ts';
import { Want } from './scan.ts';

/** How often `update` calls a function that writes the key itself. */
export const UPDATE_ATTEMPTS_MAX = 16;

/** Upgrades a store from one version to another, inside a transaction; it must not return a promise. */
export type SyncUpgrade<K, V> = (tx: SyncTransaction<K, V>, versions: UpgradeVersions) => void;

/** The argument of the function of a synchronous `transaction`. After the transaction has ended every call throws `VARVE_CLOSED`. */
export class SyncTransaction<K, V> extends SyncReader<K, V> implements TransactionWrites<K, V> {
  readonly #work: Workspace<K, V>;
  readonly #reads: SnapshotReads<K, V>;
  readonly #snapshot: number;

  /** @internal Made by `SyncStore.transaction`. */
  constructor(work: Workspace<K, V>, reads: SnapshotReads<K, V>, snapshot: number) {
    super();
    this.#work = work;
    this.#reads = reads;
    this.#snapshot = snapshot;
  }

  /** The transaction in a part of the store: in a view, or in the keys that begin with a prefix. See `at` of `varve`. */
  at<K2 = Key, V2 = V>(place: Place<K2, V2>, options?: ViewOptions<K2, V2>): SyncTransaction<K2, V2> {
    const formats = formatsAt(this.#reads.formats, place, options);
    return new SyncTransaction(this.#work.at(formats), this.#reads.at(formats), this.#snapshot);
  }

  get(key: K, options?: WaitOptions): V | undefined {
    checkWait(options);
    const plain = this.#work.plain(key);
    const own = this.#work.look(plain);
    return own === undefined ? this.#reads.entry(plain, this.#snapshot)?.value : own.value;
  }

  has(key: K, options?: WaitOptions): boolean {
    checkWait(options);
    const plain = this.#work.plain(key);
    return this.#work.has(plain) ?? this.#reads.has(plain, this.#snapshot);
  }

  count(range: CountOptions<K> = {}): number {
    const bounds = this.#work.range(range, COUNT);
    if (this.#work.countsAsSnapshot(bounds)) return this.#reads.scans.countBytes(bounds, this.#snapshot, range.signal);
    let count = 0;
    for (const _ of this.#walk<K>(bounds, { signal: range.signal }, Want.keys)) count++;
    return count;
  }

  set(key: K, value: V, options?: Lifetime): void {
    this.#work.set(key, value, options);
  }

  /**
   * Replaces a value by the result of `change`, which gets undefined for an absent key. If `change` itself writes the key, it is
   * called again, as with the store's `update`. The entry keeps its expiry unless `options` has one.
   */
  update(key: K, change: (value: OldValue<V>) => V, options: UpdateLifetime = {}): void {
    checkOptions(options, LIFETIME);
    const given = itemOf(options) ?? {};
    const plain = this.#work.plain(key);
    for (let attempt = 1; attempt <= UPDATE_ATTEMPTS_MAX; attempt++) {
      const own = this.#work.find(plain);
      const entry = own === undefined ? this.#reads.entry(plain, this.#snapshot) : undefined;
      const value = change(own === undefined ? entry?.value : this.#work.valueOf(own));
      if (this.#work.find(plain) !== own) continue;
      this.set(plain, value, lifetimeOf(given, own?.lifetime ?? entry));
      return;
    }
    throw overtaken();
  }

  delete(key: K, options?: undefined): void {
    this.#work.delete(key, options);
  }

  deleteRange(range: KeyRange<K>): void {
    this.#work.deleteRange(range);
  }

  clear(): void {
    this.#work.clear();
  }

  /** @internal */
  scan<T>(options: ScanOptions<K>, want: number): SyncRangeIterator<K, T> {
    return this.#walk(this.#work.range(options, SCAN), options, want);
  }

  #walk<T>(bounds: ByteRange, order: Course, want: number): SyncRangeIterator<K, T> {
    const own = this.#work.writes();
    const lay: Lay = (part, course) => {
      course.signal?.throwIfAborted();
      return this.#work.scan(part, course, want !== Want.keys, own);
    };
    return this.#reads.scans.overlaid<T>(bounds, order, want, this.#snapshot, lay);
  }
}

/** The parts of a store that its transactions use. */
export interface SyncTransactionParts<K, V> {
  /** Takes a snapshot; returns its number. */
  open(): number;
  close(snapshot: number): void;
  readonly reads: SnapshotReads<K, V>;
  /** The bytes of a reserved key. */
  reserved(key: Uint8Array, snapshot: number): Uint8Array | undefined;
  /** Throws a conflict in the form in which the engine reports it. */
  commit(batch: Uint8Array, snapshot: number, durability: Durability | undefined): Receipt;
}

/** One attempt of a transaction. */
export class SyncAttempt<K, V> {
  readonly work: Workspace<K, V>;
  readonly reads: SnapshotReads<K, V>;
  readonly snapshot: number;
  readonly #parts: SyncTransactionParts<K, V>;

  constructor(parts: SyncTransactionParts<K, V>) {
    this.snapshot = parts.open();
    this.reads = parts.reads;
    this.work = new Workspace<K, V>(parts.reads.formats);
    this.#parts = parts;
  }

  /** Applies its writes; returns their receipt, if there are any. Throws `VARVE_CLOSED` if it has ended. */
  commit(durability: Durability | undefined): Receipt | undefined {
    this.work.ensureOpen();
    const batch = this.work.end();
    return batch && this.#parts.commit(batch, this.snapshot, durability);
  }

  /** Accepts nothing more, and releases the snapshot. Called once. */
  end(): void {
    this.work.close();
    this.#parts.close(this.snapshot);
  }
}

/** Runs a function in a transaction; runs it again while there is a conflict. */
export function runSyncTransaction<K, V, T>(
  parts: SyncTransactionParts<K, V>,
  run: (tx: SyncTransaction<K, V>, reserved: Reserved<Uint8Array | undefined>) => T,
  options: TransactionOptions,
): T {
  const durability = durabilityOf(options, TRANSACTION);
  const { retries = RETRIES_DEFAULT, signal } = options;
  checkRetries(retries);
  for (let count = 1; ; count++) {
    signal?.throwIfAborted();
    const attempt = new SyncAttempt(parts);
    const { work, reads, snapshot } = attempt;
    try {
      const reserved = work.reserved((key) => parts.reserved(key, snapshot));
      const result = run(new SyncTransaction(work, reads, snapshot), reserved);
      refusePromise(result);
      signal?.throwIfAborted();
      attempt.commit(durability);
      return result;
    } catch (error) {
      const isConflict = error instanceof EngineConflict;
      if (!isConflict || count > retries) throw namedConflict(error, reads.formats.keys, lastConflict(count));
    } finally {
      attempt.end();
    }
  }
}

/** Upgrades a store to a version, with the writes of `upgrade`, in one transaction. */
export function upgradeSync<K, V>(
  parts: SyncTransactionParts<K, V>,
  name: string,
  version: number,
  upgrade: SyncUpgrade<K, V> | undefined,
): void {
  const run = (tx: SyncTransaction<K, V>, reserved: Reserved<Uint8Array | undefined>): unknown => {
    const versions = upgradeOf(name, reserved.get(VERSION_KEY), version);
    if (versions === undefined) return undefined;
    reserved.set(VERSION_KEY, versionBytes(version));
    const result: unknown = upgrade?.(tx, versions);
    markWritten(reserved.get(DERIVED_KEY), reserved);
    // A promise is refused by the transaction.
    return result;
  };
  runSyncTransaction(parts, run, { durability: 'strict' });
}

function refusePromise(result: unknown): void {
  if (typeof (result as { then?: unknown } | null | undefined)?.then !== 'function') return;
  throw invalid(
    'The function of a transaction of varve/synchronous returns at once, but this one returned a promise: nothing was written. Use varve to wait inside a transaction.',
  );
}
