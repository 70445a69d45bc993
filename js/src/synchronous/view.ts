/**
 * A view: a part of a synchronous store, with its own keys and values. The store itself is a view of everything.
 *
 * A write is staged in the engine and is readable at once; the turn's log (`turn-log.ts`) decides when it is logged.
 *
 * Hot path: no allocation besides the result, numbers across the boundary, keys and values through the scratch.
 */

import type { Place, Reads, Writes } from '../api.ts';
import { type Formats, formatsAt } from '../codec/formats.ts';
import { conditionOf, itemOf } from '../codec/item.ts';
import { encodeRange, halfOpen } from '../codec/range.ts';
import { hasCode } from '../errors.ts';
import { addAll, checkOptions, checkWait, DELETE, durabilityOf, type Known, SET, UPDATE, WAIT } from '../options.ts';
import { namedConflict } from '../protocol/conflict.ts';
import { Batch, type CommitBatch } from '../store/batch.ts';
import { lifetimeOf } from '../transaction/lifetime.ts';
import type {
  BeginOptions,
  CountOptions,
  DeleteOptions,
  DeleteReceipt,
  Entry,
  Key,
  KeyRange,
  OldValue,
  Receipt,
  ScanOptions,
  SetOptions,
  SyncRangeIterator,
  TransactionOptions,
  UpdateOptions,
  ViewOptions,
  WaitOptions,
  WriteOptions,
} from '../types.ts';
import type { EngineExports } from '../wasm/exports.ts';
import type { EngineFault } from '../wasm/fault.ts';
import { beginSync, type SyncTransactionHandle } from './begin.ts';
import type { SyncCore } from './core.ts';
import { type SnapshotReads, SyncReader } from './reads.ts';
import type { ScratchWriter } from './scratch-writer.ts';
import { SyncSnapshot } from './snapshot.ts';
import {
  runSyncTransaction,
  type SyncTransaction,
  type SyncTransactionParts,
  UPDATE_ATTEMPTS_MAX,
} from './transaction.ts';

/** Writes collected by `store.batch()` of `varve/synchronous`, applied atomically by `commit()`. */
export class SyncBatch<K, V> extends Batch<K, V, Receipt> {}

/** A part of a store, made by `store.at()`: the calls about keys, with keys relative to the part. It is closed with its store. */
export class SyncView<K, V> extends SyncReader<K, V> implements Reads<K, V>, Writes<K, V> {
  /** @internal */
  readonly formats: Formats<K, V>;
  /** @internal */
  readonly reads: SnapshotReads<K, V>;
  readonly #core: SyncCore;
  readonly #exports: EngineExports;
  readonly #fault: EngineFault;
  readonly #h: number;
  readonly #writer: ScratchWriter;

  /** @internal Made by `at`. */
  constructor(core: SyncCore, formats: Formats<K, V>) {
    super();
    this.formats = formats;
    this.reads = core.readsOf(formats);
    this.#core = core;
    this.#exports = core.exports;
    this.#fault = core.fault;
    this.#h = core.h;
    this.#writer = core.writer;
  }

  /**
   * A view of a part of the store: of all keys that begin with `prefix`, an array. See `at` of `varve`.
   * @example
   * const users = db.at<string, User>(['user']);
   * users.set('ada', { born: 1815 }); // ['user', 'ada'] in the store
   */
  at<K2 = Key, V2 = V>(place: Place<K2, V2>, options?: ViewOptions<K2, V2>): SyncView<K2, V2> {
    return new SyncView(this.#core, formatsAt(this.formats, place, options));
  }

  get(key: K, options?: WaitOptions): V | undefined {
    if (options !== undefined) checkWait(options);
    this.#core.ensureOpen();
    const keyBytes = this.#writer.key(this.formats.keys.stored(key));
    let status: number;
    try {
      status = this.#exports.varve_get(this.#h, keyBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    if (status === 1) return this.#core.found(this.formats.values);
    if (status < 0) throw this.#core.host.store.error(status);
    return undefined;
  }

  getEntry(key: K, options?: WaitOptions): Entry<V> | undefined {
    checkWait(options);
    return this.reads.entry(key, 0);
  }

  has(key: K, options?: WaitOptions): boolean {
    if (options !== undefined) checkWait(options);
    this.#core.ensureOpen();
    const keyBytes = this.#writer.key(this.formats.keys.stored(key));
    let status: number;
    try {
      status = this.#exports.varve_has(this.#h, keyBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    if (status < 0) throw this.#core.host.store.error(status);
    return status === 1;
  }

  set(key: K, value: V, options?: SetOptions): Receipt {
    this.#core.ensureOpen();
    const item = itemOf(options);
    if (item !== undefined) return this.#batch(SET).set(key, value, item).commit(options);
    const durability = durabilityOf(options, SET);
    const keyBytes = this.#writer.pair(this.formats.keys.stored(key), value, this.formats.values);
    let status: number;
    try {
      status = this.#exports.varve_set(this.#h, keyBytes, this.#writer.valueBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    return this.#core.log.staged(status, durability);
  }

  /**
   * Replaces a value by the result of `change`, which gets undefined for an absent key. If `change` itself writes the key, it is
   * called again, 16 times at most; then `VARVE_CONFLICT` is thrown. The entry keeps its expiry, unless `options` has one;
   * `expiresIn: null` removes it.
   */
  update(key: K, change: (value: OldValue<V>) => V, options: UpdateOptions = {}): Receipt {
    const durability = durabilityOf(options, UPDATE);
    const { signal } = options;
    const given = itemOf(options) ?? {};
    const plain = this.formats.keys.plain(key);
    for (let attempt = 1; ; attempt++) {
      const entry = this.getEntry(plain);
      const value = change(entry?.value);
      try {
        const item = { ...lifetimeOf(given, entry), ifSequence: entry?.sequence ?? null };
        return this.batch().set(plain, value, item).commit({ durability, signal });
      } catch (error) {
        if (attempt === UPDATE_ATTEMPTS_MAX || !hasCode(error, 'VARVE_CONFLICT')) throw error;
      }
    }
  }

  setMany(entries: Iterable<readonly [K, V]>, options?: WriteOptions): Receipt {
    return addAll(this.batch(), entries).commit(options);
  }

  delete(key: K, options: DeleteOptions & { existed: true }): DeleteReceipt;
  delete(key: K, options?: DeleteOptions): Receipt;
  delete(key: K, options?: DeleteOptions): Receipt | DeleteReceipt {
    if (!options?.existed) return this.#delete(key, options);
    const existed = this.has(key);
    return { ...this.#delete(key, options), existed };
  }

  #delete(key: K, options?: DeleteOptions): Receipt {
    this.#core.ensureOpen();
    const condition = conditionOf(options);
    if (condition !== undefined) return this.#batch(DELETE).delete(key, condition).commit(options);
    const durability = durabilityOf(options, DELETE);
    const keyBytes = this.#writer.key(this.formats.keys.stored(key));
    let status: number;
    try {
      status = this.#exports.varve_delete(this.#h, keyBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    return this.#core.log.staged(status, durability);
  }

  deleteRange(range: KeyRange<K>, options?: WriteOptions): Receipt {
    return this.batch().deleteRange(range).commit(options);
  }

  clear(options?: WriteOptions): Receipt {
    this.#core.ensureOpen();
    const durability = durabilityOf(options);
    return this.#core.deleteRange(halfOpen(encodeRange({}, this.formats.keys)), durability);
  }

  batch(): SyncBatch<K, V> {
    return this.#batch();
  }

  #batch(known?: Known<WriteOptions>): SyncBatch<K, V> {
    this.#core.ensureOpen();
    const core = this.#core;
    const sink = core.takeSink();
    const commit: CommitBatch<Receipt> = (end, options) => {
      const durability = durabilityOf(options, known);
      const batch = end();
      core.keepSink(sink);
      try {
        return core.commitBatch(batch.view(), 0, durability);
      } catch (error) {
        throw namedConflict(error, this.formats.keys);
      }
    };
    return new SyncBatch(this.formats, commit, sink);
  }

  /** @internal */
  scan<T>(options: ScanOptions<K>, want: number): SyncRangeIterator<K, T> {
    return this.reads.scans.scan(options, want, 0);
  }

  count(range: CountOptions<K> = {}): number {
    return this.reads.scans.count(range, 0);
  }

  /**
   * Runs a function that reads and writes, as one step. Its writes are applied together when it has returned; its reads see
   * them at once. If it throws, its writes are discarded and the error is passed on. It must not return a promise. Calls on the store
   * itself inside the function are not part of the transaction. If they write a key that the transaction has read, the function is
   * called again, up to `retries` times. Then `VARVE_CONFLICT` is thrown.
   * @example
   * const left = db.transaction((tx) => {
   *   const stock = (tx.get(['stock', item]) ?? 0) - 1;
   *   if (stock < 0) throw new Error('sold out');
   *   tx.set(['stock', item], stock);
   *   return stock;
   * });
   */
  transaction<T>(run: (tx: SyncTransaction<K, V>) => T, options: TransactionOptions = {}): T {
    this.#core.ensureOpen();
    return runSyncTransaction(this.transactionParts(), run, options);
  }

  /**
   * Begins a transaction that ends when you call `commit()` or `rollback()` of it, in this turn or a later one. Writes outside of it that
   * change what it has read are a conflict: then `commit()` throws `VARVE_CONFLICT`. The signal rolls it back when it aborts. With
   * `exclusive: true` it throws `VARVE_LOCKED` while another exclusive transaction of this store is open, because it cannot wait.
   * @example
   * using tx = db.begin();
   * tx.set('total', (tx.get('total') ?? 0) + 1);
   * tx.commit();
   */
  begin(options: BeginOptions = {}): SyncTransactionHandle<K, V> {
    this.#core.ensureOpen();
    return beginSync(this.transactionParts(), this.#core.exclusive, options);
  }

  /**
   * Takes a snapshot: every read of it sees the store as it is now. It keeps memory and files: close it, or let `using`
   * do that.
   * @example
   * using before = db.snapshot();
   */
  snapshot(): SyncSnapshot<K, V> {
    const number = this.#core.openSnapshot();
    const sequence = this.#core.memory.outSequence();
    return new SyncSnapshot(sequence, number, this.reads, () => this.#core.closeSnapshot(number));
  }

  /** Logs everything written so far; with `strict`, flushes it too. */
  commit(options: WriteOptions = {}): Receipt {
    this.#core.ensureOpen();
    return this.#core.log.commit(durabilityOf(options));
  }

  /** Flushes all writes so far, so that they are as durable as `strict` writes. */
  flush(options?: WaitOptions): void {
    checkOptions(options, WAIT);
    this.commit({ ...options, durability: 'strict' });
  }

  /** @internal The parts that transactions use. */
  transactionParts(): SyncTransactionParts<K, V> {
    const core = this.#core;
    return {
      open: () => core.openSnapshot(),
      close: (snapshot) => core.closeSnapshot(snapshot),
      reads: this.reads,
      reserved: (key, snapshot) => core.reserved(key, snapshot)?.value,
      commit: (batch, snapshot, durability) => core.commitBatch(batch, snapshot, durability),
    };
  }
}
