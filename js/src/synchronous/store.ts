/**
 * The synchronous store: every operation returns at once.
 *
 * A write is staged in the engine and is readable at once; the turn's log (`turn-log.ts`) decides when it is logged.
 *
 * Hot path: no allocation besides the result, numbers across the boundary, keys and values through the scratch.
 */

import type { Reads, Writes } from '../api.ts';
import { type Formats, formatsOf } from '../codec/formats.ts';
import { itemOf } from '../codec/item.ts';
import { encodeRange } from '../codec/range.ts';
import { ByteSink } from '../codec/sink.ts';
import type { EngineHost } from '../engine/engine-host.ts';
import { codeNumber, hasCode } from '../errors.ts';
import {
  addAll,
  COMPACT,
  checkOptions,
  checkWait,
  DELETE,
  durabilityOf,
  type Known,
  SET,
  UPDATE,
  WAIT,
} from '../options.ts';
import type { RawEntry, RawStore } from '../portable/raw-store.ts';
import type { ExportOptions, ImportOptions, ImportReport, ImportSource } from '../portable/types.ts';
import { EngineConflict, namedConflict } from '../protocol/conflict.ts';
import { asyncDispose } from '../runtime/dispose.ts';
import { Batch, type CommitBatch } from '../store/batch.ts';
import { CHECK, EXPORT } from '../store/options.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import { lifetimeOf } from '../transaction/lifetime.ts';
import type {
  CommonOpenOptions,
  CompactOptions,
  CountOptions,
  DeleteKeyOptions,
  DeleteReceipt,
  Durability,
  Entry,
  KeyRange,
  Receipt,
  RecoveryReport,
  ScanOptions,
  SetOptions,
  StorageReport,
  StoreStats,
  TransactionOptions,
  UpdateOptions,
  WaitOptions,
  WriteOptions,
} from '../types.ts';
import type { EngineExports } from '../wasm/exports.ts';
import type { EngineFault } from '../wasm/fault.ts';
import type { EngineMemory } from '../wasm/memory.ts';
import { SyncRawScan } from './raw-scan.ts';
import { type SnapshotReads, SyncReadView } from './reads.ts';
import { SyncScans } from './scans.ts';
import { ScratchWriter, TAG_RAW } from './scratch-writer.ts';
import { Slab } from './slab.ts';
import { SyncSnapshot } from './snapshot.ts';
import {
  runSyncTransaction,
  type SyncTransaction,
  type SyncTransactionParts,
  type SyncUpgrade,
  UPDATE_ATTEMPTS_MAX,
  upgradeSync,
} from './transaction.ts';
import { TurnLog } from './turn-log.ts';

/** The memory of a batch is kept for the next one up to this size. */
const SINK_BYTES_KEPT = 256 * 1024;
/** The tag byte of a stored string (codec/values.ts): it is decoded in place, everything else is copied first. */
const TAG_TEXT = 2;
/** The status of a batch with a condition that was not true. */
const CONFLICT = -codeNumber('VARVE_CONFLICT');

/** Writes collected by `store.batch()` of `varve/synchronous`, applied atomically by `commit()`. */
export class SyncBatch<K, V> extends Batch<K, V, Receipt> {}

/** An open store whose operations return at once. Made by `open` of `varve/synchronous`. */
export class SyncStore<K, V> extends SyncReadView<K, V> implements Reads<K, V>, Writes<K, V> {
  /** The name with which it was opened. */
  readonly name: string;
  /** The storage in use, and why a better one is not in use. */
  readonly storage: StorageReport;
  /** The state that `open` found. */
  readonly recovery: RecoveryReport;
  readonly #host: EngineHost;
  readonly #exports: EngineExports;
  readonly #memory: EngineMemory;
  readonly #fault: EngineFault;
  readonly #h: number;
  readonly #writer: ScratchWriter<K, V>;
  readonly #formats: Formats<K, V>;
  readonly #scans: SyncScans<K, V>;
  readonly #reads: SnapshotReads<K, V>;
  readonly #slab = new Slab();
  readonly #log: TurnLog;
  /** The memory of the last batch, for the next one. */
  #sink: ByteSink | undefined;
  /** Whether the engine has got the time in this turn. */
  #timed = false;
  readonly #endTime = (): void => {
    this.#timed = false;
  };

  /** @internal */
  constructor(
    host: EngineHost,
    { keys, values }: Pick<CommonOpenOptions<K, V>, 'keys' | 'values'>,
    durability: Durability | undefined,
  ) {
    super();
    this.name = host.name;
    this.storage = host.storage;
    this.recovery = host.recovery;
    this.#host = host;
    this.#exports = host.store.exports;
    this.#memory = host.store.memory;
    this.#fault = host.store.fault;
    this.#h = host.store.h;
    this.#formats = formatsOf(host, keys, values);
    this.#writer = new ScratchWriter(this.#memory, this.#formats);
    const ensureOpen = (): void => this.#ensureOpen();
    this.#scans = new SyncScans({ ...this.#formats, store: host.store, slab: this.#slab, ensureOpen });
    this.#reads = {
      scans: this.#scans,
      entry: (key, snapshot) => this.#entry(key, snapshot),
      has: (key, snapshot) => this.#finds(key, snapshot),
    };
    this.#log = new TurnLog(host, durability);
  }

  get(key: K, options?: WaitOptions): V | undefined {
    if (options !== undefined) checkWait(options);
    this.#ensureOpen();
    const keyBytes = this.#writer.key(key);
    let status: number;
    try {
      status = this.#exports.varve_get(this.#h, keyBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    if (status === 1) return this.#found();
    if (status < 0) throw this.#host.store.error(status);
    return undefined;
  }

  getEntry(key: K, options?: WaitOptions): Entry<V> | undefined {
    checkWait(options);
    return this.#entry(key, 0);
  }

  /** Whether a key is there in a snapshot; its entry is then in the out cells. */
  #finds(key: K, snapshot: number): boolean {
    this.#ensureOpen();
    const keyBytes = this.#writer.key(key);
    const status = this.#fault.guarded(() => this.#exports.varve_get_entry(this.#h, keyBytes, snapshot));
    return this.#host.store.check(status) !== 0;
  }

  #entry(key: K, snapshot: number): Entry<V> | undefined {
    if (!this.#finds(key, snapshot)) return undefined;
    const sequence = this.#memory.outU64(2);
    const expires = this.#memory.outExpires[0] ?? 0;
    return { value: this.#found(), sequence, expires: expires === 0 ? undefined : new Date(expires) };
  }

  has(key: K, options?: WaitOptions): boolean {
    if (options !== undefined) checkWait(options);
    this.#ensureOpen();
    const keyBytes = this.#writer.key(key);
    let status: number;
    try {
      status = this.#exports.varve_has(this.#h, keyBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    if (status < 0) throw this.#host.store.error(status);
    return status === 1;
  }

  set(key: K, value: V, options?: SetOptions): Receipt {
    this.#ensureOpen();
    const item = itemOf(options);
    if (item !== undefined) return this.#batch(SET).set(key, value, item).commit(options);
    const durability = durabilityOf(options, SET);
    const keyBytes = this.#writer.pair(key, value);
    let status: number;
    try {
      status = this.#exports.varve_set(this.#h, keyBytes, this.#writer.valueBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    return this.#log.staged(status, durability);
  }

  /**
   * Replaces a value by the result of `change`, which gets undefined for an absent key. If `change` itself writes the key, it is
   * called again, 16 times at most; then `VARVE_CONFLICT` is thrown. The entry keeps its expiry, unless `options` has one;
   * `expiresIn: null` removes it.
   */
  update(key: K, change: (value: V | undefined) => V, options: UpdateOptions = {}): Receipt {
    const durability = durabilityOf(options, UPDATE);
    const { signal } = options;
    const plain = this.#formats.keys.plain(key);
    for (let attempt = 1; ; attempt++) {
      const entry = this.getEntry(plain);
      const value = change(entry?.value);
      const lifetime = lifetimeOf(options, { expiresAt: entry?.expires });
      try {
        const item = { ...lifetime, ifSequence: entry?.sequence ?? null };
        return this.batch().set(plain, value, item).commit({ durability, signal });
      } catch (error) {
        if (attempt === UPDATE_ATTEMPTS_MAX || !hasCode(error, 'VARVE_CONFLICT')) throw error;
      }
    }
  }

  setMany(entries: Iterable<readonly [K, V]>, options?: WriteOptions): Receipt {
    return addAll(this.batch(), entries).commit(options);
  }

  delete(key: K, options: DeleteKeyOptions & { existed: true }): DeleteReceipt;
  delete(key: K, options?: DeleteKeyOptions): Receipt;
  delete(key: K, options?: DeleteKeyOptions): Receipt | DeleteReceipt {
    if (!options?.existed) return this.#delete(key, options);
    const existed = this.has(key);
    return { ...this.#delete(key, options), existed };
  }

  #delete(key: K, options?: DeleteKeyOptions): Receipt {
    this.#ensureOpen();
    const ifSequence = options?.ifSequence;
    if (ifSequence !== undefined) return this.#batch(DELETE).delete(key, { ifSequence }).commit(options);
    const durability = durabilityOf(options, DELETE);
    const keyBytes = this.#writer.key(key);
    let status: number;
    try {
      status = this.#exports.varve_delete(this.#h, keyBytes);
    } catch (error) {
      throw this.#fault.of(error);
    }
    return this.#log.staged(status, durability);
  }

  deleteRange(range: KeyRange<K>, options?: WriteOptions): Receipt {
    return this.batch().deleteRange(range).commit(options);
  }

  clear(options?: WriteOptions): Receipt {
    this.#ensureOpen();
    const durability = durabilityOf(options);
    const status = this.#fault.guarded(() => this.#exports.varve_delete_range(this.#h, 0, 0));
    return this.#log.staged(status, durability);
  }

  batch(): SyncBatch<K, V> {
    return this.#batch();
  }

  #batch(known?: Known<WriteOptions>): SyncBatch<K, V> {
    this.#ensureOpen();
    const sink = this.#sink ?? new ByteSink(1024);
    this.#sink = undefined;
    const commit: CommitBatch<Receipt> = (end, options) => {
      const durability = durabilityOf(options, known);
      const batch = end();
      if (sink.bytes.length <= SINK_BYTES_KEPT) this.#sink = sink;
      try {
        return this.#commitBatch(batch.view(), 0, durability);
      } catch (error) {
        throw namedConflict(error, this.#formats.keys);
      }
    };
    return new SyncBatch(this.#formats, commit, sink);
  }

  /** @internal */
  scan<T>(options: ScanOptions<K>, want: number): IterableIterator<T> {
    return this.#scans.scan(options, want);
  }

  count(range: CountOptions<K> = {}): number {
    return this.#scans.count(range);
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
    this.#ensureOpen();
    return runSyncTransaction(this.#transactions(), run, options);
  }

  /** @internal Upgrades the store to a version, with the writes of `upgrade`, in one transaction. */
  upgradeTo(version: number, upgrade: SyncUpgrade<K, V> | undefined): void {
    upgradeSync(this.#transactions(), this.name, version, upgrade);
  }

  /**
   * Takes a snapshot: every read of it sees the store as it is now. It keeps memory and files: close it, or let `using`
   * do that.
   * @example
   * using before = db.snapshot();
   */
  snapshot(): SyncSnapshot<K, V> {
    const number = this.#openSnapshot();
    const sequence = this.#memory.outSequence();
    return new SyncSnapshot(sequence, number, this.#reads, () => this.#closeSnapshot(number));
  }

  /** Logs everything written so far; with `strict`, flushes it too. */
  commit(options: WriteOptions = {}): Receipt {
    this.#ensureOpen();
    return this.#log.commit(durabilityOf(options));
  }

  /** Flushes all writes so far, so that they are as durable as `strict` writes. */
  flush(options?: WaitOptions): void {
    checkOptions(options, WAIT);
    this.commit({ ...options, durability: 'strict' });
  }

  /** Returns statistics of the store. */
  stats(): StoreStats {
    this.#ensureOpen();
    return this.#host.stats();
  }

  /** Flushes and merges everything into one run, in the compactor; resolves when it is done. Reads and writes continue meanwhile. */
  async compact(options: CompactOptions = {}): Promise<void> {
    this.#ensureOpen();
    checkOptions(options, COMPACT);
    await this.#host.compact(options.onProgress);
  }

  /** Verifies every block and record while reads and writes continue, in a separate worker if the store has a compactor. */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    this.#ensureOpen();
    checkOptions(options, CHECK);
    return this.#host.check(options);
  }

  /** Exports the store as it is at this call, or a range of it, as a stream of bytes: see `export` of `varve`. It returns at once. */
  export(options: ExportOptions<K> = {}): ReadableStream<Uint8Array> {
    this.#ensureOpen();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const begin = async (): Promise<void> => {
      const range = encodeRange(options, this.#formats.keys, EXPORT);
      const { signal, onProgress } = options;
      const snapshot = this.snapshot();
      const { exportTo } = await import('../portable/portable.ts');
      return exportTo(this.#portable(), snapshot, writable, { range, signal, onProgress });
    };
    begin().catch((error) => writable.abort(error));
    return readable;
  }

  /** Reads an export into this store: see `import` of `varve`. */
  async import(source: ImportSource, options?: ImportOptions): Promise<ImportReport> {
    return (await import('../portable/portable.ts')).importFrom(this.#portable(), source, options);
  }

  /** Logs the buffered writes and closes the store, so that others can open it. It is safe to call it twice. */
  close(): Promise<void> {
    this.#log.close();
    return this.#host.close();
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The store below its codecs. */
  #portable(): RawStore {
    const owner = { store: this.#host.store, ensureOpen: () => this.#ensureOpen() };
    return {
      scan: (range, snapshot) => new SyncRawScan(owner, range, snapshot),
      get: (key, snapshot) => {
        this.#ensureOpen();
        return this.#reserved(key, snapshot);
      },
      commit: (items, durability) => this.#commitBatch(items, 0, durability),
    };
  }

  #reserved(key: Uint8Array, snapshot: number): RawEntry | undefined {
    this.#memory.put(key);
    const status = this.#fault.guarded(() => this.#exports.varve_get_entry(this.#h, key.length, snapshot));
    if (this.#host.store.check(status) === 0) return undefined;
    const sequence = this.#memory.outU64(2);
    return { value: this.#memory.takeOut(), sequence };
  }

  #transactions(): SyncTransactionParts<K, V> {
    return {
      formats: this.#formats,
      open: () => this.#openSnapshot(),
      close: (snapshot) => this.#closeSnapshot(snapshot),
      reads: this.#reads,
      reserved: (key, snapshot) => this.#reserved(key, snapshot)?.value,
      commit: (batch, snapshot, durability) => void this.#commitBatch(batch, snapshot, durability),
    };
  }

  #commitBatch(items: Uint8Array, snapshot: number, durability: Durability | undefined): Receipt {
    this.#ensureOpen();
    this.#memory.put(items);
    const status = this.#fault.guarded(() => this.#exports.varve_batch(this.#h, items.length, snapshot));
    if (status === CONFLICT) throw this.#conflict();
    return this.#log.staged(status, durability);
  }

  #openSnapshot(): number {
    this.#ensureOpen();
    return this.#host.store.check(this.#fault.guarded(() => this.#exports.varve_snapshot_open(this.#h)));
  }

  #closeSnapshot(number: number): void {
    if (this.#log.refusal === undefined) this.#fault.guarded(() => this.#exports.varve_snapshot_close(this.#h, number));
  }

  #ensureOpen(): void {
    if (this.#log.refusal !== undefined) throw this.#log.refusal;
    if (!this.#timed) this.#giveTime();
  }

  /** Gives the engine the time, once in a turn before its first operation: entries expire between turns only. */
  #giveTime(): void {
    this.#timed = true;
    this.#host.store.tick();
    queueMicrotask(this.#endTime);
  }

  /** The value whose pointer and length are in out cells 0 and 1. */
  #found(): V {
    const memory = this.#memory.fresh();
    const { u8, out } = memory;
    const start = out[0] as number;
    const end = start + (out[1] as number);
    const tag = u8[start];
    if (tag === TAG_RAW && this.#writer.raw) return this.#slab.copy(memory, start + 1, end) as unknown as V;
    if (tag === TAG_TEXT) return this.#formats.values.read(u8, start, end);
    const copy = this.#slab.copy(memory, start, end);
    return this.#formats.values.read(copy, 0, copy.length);
  }

  /** The conflict whose key is in out cells 0 and 1 and whose sequence is in out cells 2 and 3. */
  #conflict(): EngineConflict {
    const found = this.#memory.outU64(2);
    return new EngineConflict(this.#memory.takeOut(), found);
  }
}
