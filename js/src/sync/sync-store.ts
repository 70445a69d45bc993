/**
 * The synchronous store: every operation returns at once.
 *
 * A write is staged in the engine (readable at once, level `buffered`) and logged with all others at the end of the turn,
 * at 64 KiB, or by `commit`. `strict` writes are logged and flushed before they return.
 *
 * Invariant: what a turn staged is logged in order, all of it or (refused) none. If logging that nobody waits for fails,
 * the store is poisoned: writes that returned `buffered` are lost, and every later call says so.
 *
 * Hot path: no allocation besides the result, numbers across the boundary, keys and values through the scratch.
 */

import { type KeyFormat, keyFormatOf } from '../codec/key-format.ts';
import { encodeRange } from '../codec/range.ts';
import { ByteSink } from '../codec/sink.ts';
import type { ValueFormat } from '../codec/values.ts';
import { codeNumber, VarveError } from '../errors.ts';
import { EngineConflict, namedConflict } from '../protocol/conflict.ts';
import { levelNumber, levelOf } from '../protocol/frame.ts';
import { COUNT_BATCH, readScanBatch, writeScanOpen } from '../protocol/scan.ts';
import { asyncDispose } from '../store/dispose.ts';
import { checkDurability, checkLimit, UPDATE_ATTEMPTS_MAX } from '../store/options.ts';
import type {
  CompactOptions,
  Condition,
  Durability,
  Entry,
  KeyCodec,
  KeyRange,
  Receipt,
  RecoveryReport,
  ScanOptions,
  SetItemOptions,
  StorageReport,
  StoreStats,
} from '../types.ts';
import type { EngineExports } from '../wasm/exports.ts';
import { engineFault, guarded, onEngineFault } from '../wasm/fault.ts';
import type { EngineMemory } from '../wasm/memory.ts';
import type { EngineHost } from '../worker/engine-host.ts';
import { ScratchWriter, TAG_RAW } from './scratch-writer.ts';
import { Slab } from './slab.ts';
import { SyncBatch } from './sync-batch.ts';
import { BATCH_BYTES_FIRST, type ScanSource, SyncScan, Want } from './sync-scan.ts';
import { SyncSnapshot } from './sync-snapshot.ts';

/** Staged bytes that are logged without waiting for the end of the turn. */
const STAGED_BYTES_MAX = 64 * 1024;
/** A batch's memory up to this size is kept for the next one. */
const SINK_BYTES_KEPT = 256 * 1024;
/** The tag byte of a stored string (codec/values.ts): it is decoded in place, everything else is copied first. */
const TAG_TEXT = 2;
const RELAXED = levelNumber('relaxed');
/** The status of a batch whose condition did not hold. */
const CONFLICT = -codeNumber('VARVE_CONFLICT');

/** Options of one synchronous write. */
export interface SyncWriteOptions {
  /** The level to reach before the call returns. Default: `buffered`, or the store's `durability` unless that is `relaxed`. */
  durability?: Durability | undefined;
}

/** Options of a synchronous `set`. */
export interface SyncSetOptions extends SyncWriteOptions, SetItemOptions {}

/** Options of a synchronous `delete`. */
export interface SyncDeleteOptions extends SyncWriteOptions, Condition {}

/** Options of a synchronous scan. */
export type SyncScanOptions<K> = Omit<ScanOptions<K>, 'signal'>;

/** An open store whose operations return at once. Made by `open` of `varve/sync`. */
export class SyncStore<K, V> {
  /** The name it was opened by. */
  readonly name: string;
  /** The storage in use, and why not a better one. */
  readonly storage: StorageReport;
  /** What opening it found. */
  readonly recovery: RecoveryReport;
  readonly #host: EngineHost;
  readonly #exports: EngineExports;
  readonly #memory: EngineMemory;
  readonly #h: number;
  readonly #writer: ScratchWriter<K, V>;
  readonly #codec: KeyCodec<K> | undefined;
  readonly #keys: KeyFormat<K>;
  readonly #values: ValueFormat<V>;
  readonly #source: ScanSource<K, V>;
  readonly #slab = new Slab();
  readonly #level: Durability | 'buffered';
  readonly #endTurn = (): void => this.#endOfTurn();
  /** The memory of the last batch, for the next one. */
  #sink: ByteSink | undefined;
  /** The newest write that returned as buffered and is not known to be logged; 0 when there is none. */
  #buffered = 0;
  #scheduled = false;
  /** The engine knows the time of this turn. */
  #timed = false;
  readonly #endTime = (): void => {
    this.#timed = false;
  };
  #refusal: VarveError | undefined;
  readonly #unwatch: () => void;

  /** @internal */
  constructor(
    host: EngineHost,
    keys: KeyCodec<K> | undefined,
    values: ValueFormat<V>,
    durability: Durability | undefined,
  ) {
    this.name = host.name;
    this.storage = host.storage;
    this.recovery = host.recovery;
    this.#host = host;
    this.#exports = host.store.exports;
    this.#memory = host.store.memory;
    this.#h = host.store.h;
    this.#writer = new ScratchWriter(this.#memory, keys, values);
    this.#codec = keys;
    this.#keys = keyFormatOf(keys);
    this.#values = values;
    this.#source = { store: host.store, keys: this.#keys, values, ensureOpen: () => this.#ensureOpen() };
    this.#unwatch = onEngineFault((fault) => {
      this.#refusal = fault;
    });
    this.#level = durability === undefined || durability === 'relaxed' ? 'buffered' : durability;
  }

  /** The value of a key, or undefined. A Uint8Array may be a view of a larger buffer: `slice()` it before you transfer it. */
  get(key: K): V | undefined {
    this.#ensureOpen();
    const keyBytes = this.#writer.key(key);
    let status: number;
    try {
      status = this.#exports.varve_get(this.#h, keyBytes);
    } catch (error) {
      throw engineFault(error);
    }
    if (status === 1) return this.#found();
    if (status < 0) throw this.#host.store.error(status);
    return undefined;
  }

  /** The values of several keys, in their order. */
  getMany(keys: Iterable<K>): (V | undefined)[] {
    return Array.from(keys, (key) => this.get(key));
  }

  /** The value of a key with its sequence and expiry, or undefined. */
  getEntry(key: K): Entry<V> | undefined {
    return this.#entry(key, 0);
  }

  #entry(key: K, snapshot: number): Entry<V> | undefined {
    this.#ensureOpen();
    const keyBytes = this.#writer.key(key);
    const status = guarded(() => this.#exports.varve_get_entry(this.#h, keyBytes, snapshot));
    if (status < 0) throw this.#host.store.error(status);
    if (status === 0) return undefined;
    const { out, outExpires } = this.#memory.fresh();
    const sequence = (out[2] ?? 0) + (out[3] ?? 0) * 0x1_0000_0000;
    const expires = outExpires[0] ?? 0;
    return { value: this.#found(), sequence, expires: expires === 0 ? undefined : new Date(expires) };
  }

  /** Whether a key is there. */
  has(key: K): boolean {
    this.#ensureOpen();
    const keyBytes = this.#writer.key(key);
    let status: number;
    try {
      status = this.#exports.varve_has(this.#h, keyBytes);
    } catch (error) {
      throw engineFault(error);
    }
    if (status < 0) throw this.#host.store.error(status);
    return status === 1;
  }

  /** Whether each of several keys is there, in their order. */
  hasMany(keys: Iterable<K>): boolean[] {
    return Array.from(keys, (key) => this.has(key));
  }

  /** Gives a key a value, for `expiresIn` milliseconds if given; with `ifSequence` only if its entry is the one that was read. */
  set(key: K, value: V, options?: SyncSetOptions): Receipt {
    this.#ensureOpen();
    if (options !== undefined && (options.expiresIn !== undefined || options.ifSequence !== undefined)) {
      return this.batch().set(key, value, options).commit(options);
    }
    const keyBytes = this.#writer.pair(key, value);
    let status: number;
    try {
      status = this.#exports.varve_set(this.#h, keyBytes, this.#writer.valueBytes);
    } catch (error) {
      throw engineFault(error);
    }
    return this.#staged(status, options);
  }

  /**
   * Replaces a value by what `change` makes of it (undefined for an absent key). Should `change` itself write the key, it is
   * called again, 16 times at most, then `VARVE_CONFLICT` is thrown. An expiry is not kept: give `expiresIn`.
   */
  update(key: K, change: (value: V | undefined) => V, options: Omit<SyncSetOptions, 'ifSequence'> = {}): Receipt {
    for (let attempt = 1; ; attempt++) {
      const entry = this.getEntry(key);
      const value = change(entry?.value);
      try {
        return this.set(key, value, { ...options, ifSequence: entry?.sequence ?? null });
      } catch (error) {
        if (attempt === UPDATE_ATTEMPTS_MAX || (error as { code?: unknown })?.code !== 'VARVE_CONFLICT') throw error;
      }
    }
  }

  /** Gives several keys their values, together. */
  setMany(entries: Iterable<readonly [K, V]>, options?: SyncWriteOptions): Receipt {
    const batch = this.batch();
    for (const [key, value] of entries) batch.set(key, value);
    return batch.commit(options);
  }

  /** Removes a key; with `ifSequence` only if its entry is the one that was read. */
  delete(key: K, options?: SyncDeleteOptions): Receipt {
    this.#ensureOpen();
    if (options?.ifSequence !== undefined) {
      return this.batch().delete(key, { ifSequence: options.ifSequence }).commit(options);
    }
    const keyBytes = this.#writer.key(key);
    let status: number;
    try {
      status = this.#exports.varve_delete(this.#h, keyBytes);
    } catch (error) {
      throw engineFault(error);
    }
    return this.#staged(status, options);
  }

  /** Removes every key of a range, at the cost of one write. A range without bounds is refused: that is `clear()`. */
  deleteRange(range: KeyRange<K>, options?: SyncWriteOptions): Receipt {
    return this.batch().deleteRange(range).commit(options);
  }

  /** Removes everything. */
  clear(options?: SyncWriteOptions): Receipt {
    this.#ensureOpen();
    const status = guarded(() => this.#exports.varve_delete_range(this.#h, 0, 0));
    return this.#staged(status, options);
  }

  /** Collects writes that happen together. */
  batch(): SyncBatch<K, V> {
    this.#ensureOpen();
    const sink = this.#sink ?? new ByteSink(1024);
    this.#sink = undefined;
    const commit = (items: Uint8Array, options: SyncWriteOptions): Receipt => {
      this.#ensureOpen();
      this.#memory.put(items);
      if (sink.bytes.length <= SINK_BYTES_KEPT) this.#sink = sink;
      const status = guarded(() => this.#exports.varve_batch(this.#h, items.length));
      if (status === CONFLICT) throw this.#conflict();
      return this.#staged(status, options);
    };
    return new SyncBatch({ codec: this.#codec, keys: this.#keys, values: this.#values, sink, commit });
  }

  /** The keys of a range, in order. */
  keys(options: SyncScanOptions<K> = {}): IterableIterator<K> {
    return this.#scan<K>(options, Want.keys);
  }

  /** The values of a range, in the order of their keys. */
  values(options: SyncScanOptions<K> = {}): IterableIterator<V> {
    return this.#scan<V>(options, Want.values);
  }

  /** The entries of a range, in the order of their keys. */
  entries(options: SyncScanOptions<K> = {}): IterableIterator<[K, V]> {
    return this.#scan<[K, V]>(options, Want.entries);
  }

  /** All entries, in the order of their keys. */
  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.entries();
  }

  /** How many keys a range has; no key leaves the engine. */
  count(range: KeyRange<K> = {}): number {
    return this.#count(range, 0);
  }

  /**
   * Takes a snapshot: every read of it sees the store as it is now. It holds on to memory and files: close it, or let `using`
   * do that.
   * @example
   * using before = db.snapshot();
   */
  snapshot(): SyncSnapshot<K, V> {
    this.#ensureOpen();
    const number = guarded(() => this.#exports.varve_snapshot_open(this.#h));
    if (number < 0) throw this.#host.store.error(number);
    return new SyncSnapshot<K, V>(this.#memory.outSequence(), {
      entry: (key) => this.#entry(key, number),
      scan: (options, want) => this.#scan(options, want, number),
      count: (range) => this.#count(range, number),
      release: () => {
        if (this.#refusal === undefined) guarded(() => this.#exports.varve_snapshot_close(this.#h, number));
      },
    });
  }

  /** Logs everything written so far; with `strict`, flushes it too. */
  commit(options: SyncWriteOptions = {}): Receipt {
    this.#ensureOpen();
    return this.#commit(options.durability ?? (this.#level === 'buffered' ? 'relaxed' : this.#level));
  }

  /** Makes everything written so far as durable as `strict`. */
  flush(): void {
    this.commit({ durability: 'strict' });
  }

  /**
   * Resolves in a later turn, when spare files are open again and what held writers up is done.
   * @example
   * try { db.set(key, value); } catch (error) { if (error.code === 'VARVE_BUSY') await db.room(); }
   */
  async room(): Promise<void> {
    this.#ensureOpen();
    await this.#host.room();
  }

  /** Numbers about the store. */
  stats(): StoreStats {
    this.#ensureOpen();
    return this.#host.stats();
  }

  /** Flushes and merges everything into one run, in the compactor: resolves when it is done. Reads and writes go on. */
  async compact({ onProgress }: CompactOptions = {}): Promise<void> {
    this.#ensureOpen();
    await this.#host.compact(onProgress);
  }

  /** Writes what is left, closes the store and lets the next one have it. Safe to call twice. */
  close(): Promise<void> {
    this.#unwatch();
    if (this.#refusal?.code !== 'VARVE_POISONED' && this.#refusal?.code !== 'VARVE_INTERNAL') {
      this.#refusal = new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
    }
    return this.#host.close();
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  #ensureOpen(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
    if (!this.#timed) this.#tellTime();
  }

  /** Once in a turn, before its first operation: what expires, expires between turns. */
  #tellTime(): void {
    this.#timed = true;
    this.#host.store.tick();
    queueMicrotask(this.#endTime);
  }

  /** The value whose place is in out cells 0 and 1. */
  #found(): V {
    const memory = this.#memory.fresh();
    const { u8, out } = memory;
    const start = out[0] as number;
    const end = start + (out[1] as number);
    const tag = u8[start];
    if (tag === TAG_RAW && this.#writer.raw) return this.#slab.copy(memory, start + 1, end) as unknown as V;
    if (tag === TAG_TEXT) return this.#values.read(u8, start, end);
    const copy = this.#slab.copy(memory, start, end);
    return this.#values.read(copy, 0, copy.length);
  }

  /** The conflict whose key is in out cells 0 and 1 and whose sequence is in 2 and 3. */
  #conflict(): unknown {
    const key = this.#memory.takeOut();
    const { out } = this.#memory;
    const found = (out[2] ?? 0) + (out[3] ?? 0) * 0x1_0000_0000;
    return namedConflict(new EngineConflict(key, found), this.#keys);
  }

  /** What a staged write returns; `status` is the number of bytes staged. */
  #staged(status: number, options: SyncWriteOptions | undefined): Receipt {
    if (status < 0) throw this.#refused(this.#host.store.error(status));
    const level = options?.durability ?? this.#level;
    if (level !== 'buffered') {
      try {
        return this.#commit(level);
      } catch (error) {
        throw this.#refused(error);
      }
    }
    const sequence = this.#memory.outSequence();
    this.#buffered = sequence;
    if (status < STAGED_BYTES_MAX) {
      this.#schedule();
      return { sequence, durability: 'buffered' };
    }
    const logged = this.#log();
    this.#schedule();
    return { sequence, durability: logged ? 'relaxed' : 'buffered' };
  }

  #commit(durability: Durability): Receipt {
    checkDurability(durability);
    let status: number;
    try {
      status = this.#exports.varve_commit(this.#h, levelNumber(durability));
    } catch (error) {
      throw engineFault(error);
    }
    if (status < 0) throw this.#host.store.error(status);
    this.#buffered = 0;
    this.#schedule();
    return { sequence: this.#memory.outSequence(), durability: levelOf(status) ?? durability };
  }

  /** Logs what nobody waits for. False: no file is spare, and it is logged once one is. Throws, poisoned, when it cannot be. */
  #log(): boolean {
    const status = guarded(() => this.#exports.varve_commit(this.#h, RELAXED));
    if (status >= 0) {
      this.#buffered = 0;
      return true;
    }
    const cause = this.#host.store.error(status);
    if (cause.code === 'VARVE_BUSY') return false;
    this.#poison(cause);
    throw cause;
  }

  /** A write was refused. Making room for it may have taken writes before it along, which had returned as buffered. */
  #refused(cause: unknown): unknown {
    const isTold = this.#refusal !== undefined || this.#buffered === 0;
    if (!isTold && this.#host.stats().sequence < this.#buffered) this.#poison(cause);
    return cause;
  }

  #poison(cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause);
    this.#refusal = new VarveError(
      'VARVE_POISONED',
      `Writes that had returned as buffered could not be logged and are lost (${why}) Close the store and open it again.`,
      { cause },
    );
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(this.#endTurn);
  }

  #endOfTurn(): void {
    this.#scheduled = false;
    if (this.#refusal !== undefined) return;
    try {
      if (this.#level === 'buffered' && this.#isPending() && !this.#logAtEndOfTurn()) return;
      this.#host.afterTurn();
    } catch {
      // Nobody is there to catch what the end of a turn throws: a fault of the engine, which every later call tells.
    }
  }

  #isPending(): boolean {
    return guarded(() => this.#exports.varve_pending(this.#h)) > 0;
  }

  /** Nobody is there to catch what the end of a turn throws; every later call tells. False: nothing more to do now. */
  #logAtEndOfTurn(): boolean {
    try {
      if (!this.#log()) this.#host.room().then(this.#endTurn, () => undefined);
      return true;
    } catch {
      return false;
    }
  }

  #scan<T>(options: SyncScanOptions<K>, want: number, snapshot = 0): SyncScan<K, V, T> {
    return new SyncScan(this.#source, this.#openScan(options, want, snapshot), want);
  }

  #count(range: KeyRange<K>, snapshot: number): number {
    const { store } = this.#host;
    const cursor = this.#openScan({ ...range, reverse: false, limit: undefined }, 0, snapshot);
    let count = 0;
    for (let more = cursor > 0; more; ) {
      more = store.check(guarded(() => this.#exports.varve_scan_next(this.#h, cursor, COUNT_BATCH))) > 0;
      const bytes = this.#memory.takeOut();
      count += readScanBatch(bytes, 0, bytes.length, false, false).count;
    }
    return count;
  }

  /** Opens a scan in the engine; 0 for one that has nothing to bring. */
  #openScan(options: SyncScanOptions<K>, want: number, snapshot: number): number {
    this.#ensureOpen();
    const range = encodeRange(options, this.#codec);
    const { limit } = options;
    if (limit !== undefined) checkLimit(limit);
    if (range.empty || limit === 0) return 0;
    const sink = new ByteSink(64);
    const keys = (want & Want.keys) !== 0;
    const values = (want & Want.values) !== 0;
    writeScanOpen(
      { range, reverse: options.reverse === true, keys, values, limit, snapshot, batch_bytes: BATCH_BYTES_FIRST },
      sink,
    );
    this.#memory.put(sink.bytes.subarray(0, sink.at));
    const cursor = guarded(() => this.#exports.varve_scan_open(this.#h, sink.at));
    if (cursor < 0) throw this.#host.store.error(cursor);
    return cursor;
  }
}
