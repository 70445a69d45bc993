/**
 * The asynchronous store: what `open` of `varve` resolves with.
 *
 * Invariant: operations take effect in the order of their calls; the operations of one turn are sent together, and reads see
 * the writes called before them. The store object itself has no data: the data is in the engine behind its client.
 */

import type { Writes } from '../api.ts';
import type { ReadCache } from '../cache/read-cache.ts';
import type { ChangeIterator, ChangesOptions, Live, LiveOptions, LiveRange, WatchOptions } from '../changes/types.ts';
import type { Client } from '../client/client.ts';
import { batchOperation, deleteRange, Operations, scanEntries, syncOperation } from '../client/operations.ts';
import { itemOf } from '../codec/item.ts';
import { type ByteRange, encodeRange } from '../codec/range.ts';
import {
  addAll,
  COMPACT,
  checkOptions,
  DELETE,
  durabilityOf,
  isRange,
  type Known,
  RANGE,
  SET,
  TRANSACTION,
  UPDATE,
  WAIT,
  WRITE,
} from '../options.ts';
import type { ExportOptions, ImportOptions, ImportReport, ImportSource } from '../portable/types.ts';
import { namedConflict } from '../protocol/conflict.ts';
import { levelNumber } from '../protocol/frame.ts';
import type { Operation } from '../protocol/frame-writer.ts';
import type { OpenReport } from '../protocol/messages.ts';
import { asyncDispose } from '../runtime/dispose.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import type { CheckOptions, CheckReport, ToolsProgress } from '../tools/types.ts';
import type {
  CompactOptions,
  CompactProgress,
  DeleteKeyOptions,
  DeleteReceipt,
  KeyRange,
  Receipt,
  RecoveryReport,
  SetOptions,
  StorageReport,
  StoreStats,
  TransactionOptions,
  UpdateOptions,
  WaitOptions,
  WriteOptions,
} from '../types.ts';
import { Batch } from './batch.ts';
import { Cursor } from './cursor.ts';
import { ChangesIterator, changesNow, checkSince, type LiveRun, liveQuery } from './following.ts';
import { loaders } from './loaders.ts';
import type { OpenOptions } from './open-options.ts';
import { CHECK, EXPORT, wasmPlace } from './options.ts';
import type { PortableParts } from './portable.ts';
import { ReadView } from './read-view.ts';
import { Snapshot } from './snapshot.ts';
import { takeSnapshot } from './snapshot-handle.ts';
import type { Transaction, Upgrade } from './transaction.ts';
import type { UpdateParts } from './update.ts';

const WATCH: Known<WatchOptions> = { ...WAIT, keysOnly: 1 };
const CHANGES: Known<ChangesOptions<never>> = { ...RANGE, ...WATCH, since: 1 };
const LIVE: Known<LiveRange<never>> = { ...RANGE, reverse: 1, limit: 1, as: 1 };
const FIRST: Known<LiveOptions<unknown>> = { initial: 1 };
const LIVE_READ: Known<KeyRange & LiveOptions<unknown>> = { ...RANGE, ...FIRST };

/** The target of a live query: a key, a range, or a function that reads a snapshot. */
type LiveTarget<K, V> = K | LiveRange<K> | ((view: Snapshot<K, V>) => unknown);

/** Bounds of everything, for the operation that deletes a range. */
const NOTHING = new Uint8Array(0);

/**
 * An open store: a durable, ordered map. Every method rejects with a `VarveError`: `VARVE_CLOSED` after `close()`,
 * the signal's `reason` when it aborts, `VARVE_INVALID_KEY` and `VARVE_INVALID_VALUE` for a key or value that cannot be stored,
 * `VARVE_STORAGE_FULL`, `VARVE_CORRUPT`, `VARVE_IO` and `VARVE_POISONED` when the storage fails.
 *
 * A Uint8Array that a read returns is a view of a larger buffer: `slice()` it if you transfer it or keep it for long.
 *
 * @example
 * const db = await open<string, number>('counters');
 * await db.set('visits', 1);
 * await db.get('visits'); // 1
 */
export class Store<K, V> extends ReadView<K, V> implements Writes<K, V>, AsyncDisposable {
  /** The name with which it was opened. */
  readonly name: string;
  /** The storage in use, and why a better one is not in use. */
  readonly storage: StorageReport;
  /** The state that `open` found: a new store, a clean one, or a log that was replayed. */
  readonly recovery: RecoveryReport;
  readonly #client: Client;
  readonly #operations: Operations<K, V>;
  readonly #level: number;
  readonly #onClose: () => void;
  /** The module for updates and transactions, once it is loaded. */
  #loaded: typeof import('./transaction.ts') | undefined;
  #cache: ReadCache<K, V> | undefined;
  /** How many checks were started: a signal stops only the check that it was given to. */
  #checks = 0;

  /** @internal Made by `open`. */
  constructor(name: string, client: Client, report: OpenReport, options: OpenOptions<K, V>, onClose: () => void) {
    const operations = new Operations(options.keys, options.values);
    super(client, operations, { number: 0, refusal: undefined });
    this.name = name;
    this.storage = report.storage;
    this.recovery = report.recovery;
    this.#client = client;
    this.#operations = operations;
    this.#level = levelNumber(options.durability ?? 'relaxed');
    this.#onClose = onClose;
  }

  set(key: K, value: V, options?: SetOptions): Promise<Receipt> {
    const item = itemOf(options);
    if (item === undefined) return this.#write(this.#operations.set, key, value, options, SET);
    return this.#collected((batch) => batch.set(key, value, item), options, SET);
  }

  /**
   * Replaces a value by the result of `change`. It reads the value, calls `change` (with undefined for an absent key), and writes the
   * result, unless another tab wrote the key meanwhile. In that case it waits a short time, reads, and calls `change` again: 100 times
   * at most (about ten seconds). Then it rejects with `VARVE_CONFLICT`. Calls on one store for the same key run in their order, one at
   * a time. The entry keeps its expiry; `expiresIn` or `expiresAt` replaces it, `expiresIn: null` removes it.
   *
   * `change` may be asynchronous. Other updates of the same key wait for it, but only for a second: then they go ahead, and `change` is
   * called again. `change` must not update that key itself.
   *
   * @example
   * await db.update('visits', (visits = 0) => visits + 1);
   * await db.update(['session', id], (session) => ({ ...session, seen: Date.now() })); // still expires when it did
   */
  async update(
    key: K,
    change: (value: V | undefined) => V | PromiseLike<V>,
    options?: UpdateOptions,
  ): Promise<Receipt> {
    const parts = this.#transactions(options, UPDATE);
    const bytes = this.#operations.keys.encode(key);
    // Once it is loaded, an update begins within the call: so an update that is called from another update's function is recognized.
    this.#loaded ??= await loaders.transactions();
    return this.#loaded.update(parts, bytes, change, options);
  }

  setMany(entries: Iterable<readonly [K, V]>, options?: WriteOptions): Promise<Receipt> {
    return this.#collected((batch) => addAll(batch, entries), options);
  }

  delete(key: K, options: DeleteKeyOptions & { existed: true }): Promise<DeleteReceipt>;
  delete(key: K, options?: DeleteKeyOptions): Promise<Receipt>;
  delete(key: K, options?: DeleteKeyOptions): Promise<Receipt> {
    const { ifSequence, existed } = options ?? {};
    if (ifSequence === undefined) {
      const operation = existed ? this.#operations.deleteAsking : this.#operations.delete;
      return this.#write(operation, key, undefined, options, DELETE);
    }
    const receipt = this.#collected((batch) => batch.delete(key, { ifSequence }), options, DELETE);
    // The condition was true.
    return existed ? receipt.then((found) => ({ ...found, existed: ifSequence !== null })) : receipt;
  }

  async deleteRange(range: KeyRange<K>, options?: WriteOptions): Promise<Receipt> {
    return this.batch().deleteRange(range).commit(options);
  }

  clear(options?: WriteOptions): Promise<Receipt> {
    return this.#write(deleteRange, NOTHING, NOTHING, options);
  }

  batch(): Batch<K, V> {
    return this.#batch();
  }

  /**
   * Runs a function that reads and writes, as one step. All its reads have the same read point, and all its writes are applied
   * together. They are applied only if nobody else has written the keys and ranges that it read. So transactions are serializable. On
   * a conflict the function is called again, with a new read point, after a short wait: up to `retries` times (100). Then it rejects
   * with `VARVE_CONFLICT`, which names the key. So the function must do nothing that cannot be done twice. Transactions of one store
   * that conflicted over a key continue one by one.
   *
   * The function may wait for anything, also a `fetch`: it blocks nobody. If it throws, its writes are discarded and the error is
   * passed on. A transaction that only reads never conflicts. Time stands still in it: an entry that expires meanwhile is still there,
   * and that is no conflict. Calls on the store itself inside the function are not part of the transaction; if they write a key that
   * the transaction has read, the transaction conflicts with itself.
   *
   * @example
   * const left = await db.transaction(async (tx) => {
   *   const stock = (await tx.get(['stock', item])) ?? 0;
   *   if (stock < 1) throw new Error('sold out');
   *   tx.set(['stock', item], stock - 1);
   *   return stock - 1;
   * });
   */
  async transaction<T>(run: (tx: Transaction<K, V>) => T | PromiseLike<T>, options?: TransactionOptions): Promise<T> {
    const parts = this.#transactions(options, TRANSACTION);
    // Once it is loaded, a transaction begins within the call. To import it again would take as long as a call of the engine.
    this.#loaded ??= await loaders.transactions();
    return this.#loaded.runTransaction(parts, run, options);
  }

  /** @internal Upgrades the store to a version, with the writes of `upgrade`, in one transaction. */
  async upgradeTo(version: number, upgrade: Upgrade<K, V> | undefined, signal: AbortSignal | undefined): Promise<void> {
    const { runUpgrade } = await loaders.transactions();
    const parts = this.#transactions({ durability: 'strict' }, WRITE);
    return runUpgrade(parts, this.name, version, upgrade, { signal });
  }

  /**
   * Takes a snapshot: every read of it sees the store as it is at this call, whatever is written later. It keeps the memory and
   * the files of that read point: close it, or let `await using` do that. A snapshot that you do not close is closed when it is
   * garbage collected. `stats()` reports how many are open and the age of the oldest.
   *
   * @example
   * await using before = await db.snapshot();
   * await db.clear();
   * await before.count(); // as many as there were
   */
  async snapshot(): Promise<Snapshot<K, V>> {
    return new Snapshot(this.#client, this.#operations, await takeSnapshot(this.#client));
  }

  /**
   * Iterates over the changes that any tab commits after this call, or after the sequence `since`: every change once, in the order of
   * the sequences. The iterator ends only when the loop is left, when its signal aborts (with the signal's `reason`), or when the store is closed
   * (`VARVE_CLOSED`). A slow consumer keeps only its position: nobody waits for it. To continue after a reload, pass the sequence of the
   * last change that you handled. The history goes as far back as `open({ historyBytes })` allows. If a part of it is gone, you get a
   * change of the type `gap`: then read again the data that you keep.
   *
   * @example
   * for await (const change of db.changes({ since: last, prefix: ['note'], signal })) {
   *   if (change.type === 'gap') await readAll();
   *   else await apply(change); // 'set', 'delete' or 'deleteRange'
   *   last = change.sequence;
   * }
   */
  changes(options: ChangesOptions<K> & { keysOnly: true }): ChangeIterator<K, undefined>;
  changes(options?: ChangesOptions<K>): ChangeIterator<K, V>;
  changes(options: ChangesOptions<K> = {}): ChangeIterator<K, V | undefined> {
    return this.#follow(encodeRange(options, this.#operations.codec, CHANGES), options);
  }

  /**
   * Iterates over the changes of one key or a range that are committed after this call: `changes` without `since`. An object that has
   * only fields of a range is a range; anything else is a key.
   *
   * @example
   * for await (const change of db.watch(['note', 42], { signal })) render(change);
   * for await (const { type } of db.watch({ prefix: ['note'] }, { keysOnly: true, signal })) refresh(type);
   */
  watch(target: K | KeyRange<K>, options: WatchOptions & { keysOnly: true }): ChangeIterator<K, undefined>;
  watch(target: K | KeyRange<K>, options?: WatchOptions): ChangeIterator<K, V>;
  watch(target: K | KeyRange<K>, options: WatchOptions = {}): ChangeIterator<K, V | undefined> {
    checkOptions(options, WATCH);
    const { keysOnly, signal } = options;
    const range = isRange<K, KeyRange<K>>(target, this.#operations.codec) ? target : this.#only(target);
    return this.#follow(encodeRange(range, this.#operations.codec), { keysOnly, signal });
  }

  /**
   * A live query: the value of a key, the entries of a range, or the result of a function that reads a snapshot. It is kept up to date
   * while somebody is subscribed. It is a store for Svelte, and it fits `useSyncExternalStore` of React. A function runs again when a
   * key of its range has changed; by default, when any key has changed. Many changes in a row run a query once. The expiry of an entry
   * is not a change. The value is `initial` until the first result. `update` replaces the query, and keeps the last value until the
   * new query has one.
   *
   * @example
   * const notes = db.live({ prefix: ['note'], reverse: true, limit: 20 }, { initial: [] }); // [key, value][]
   * const stop = notes.subscribe((entries) => render(entries));
   * notes.update({ prefix: ['note'], limit: 50 });
   * const open = db.live({ prefix: ['todo'], as: 'count' });
   * const sum = db.live(async (view) => total(await view.getMany(['a', 'b'])), { gte: 'a', lte: 'b', initial: 0 });
   */
  live<T, I extends T | undefined = undefined>(
    query: (view: Snapshot<K, V>) => T | PromiseLike<T>,
    range?: KeyRange<K> & LiveOptions<I>,
  ): Live<T | Extract<I, undefined>, [query: (view: Snapshot<K, V>) => T | PromiseLike<T>, range?: KeyRange<K>]>;
  live<I extends number | undefined = undefined>(
    query: LiveRange<K> & { as: 'count' },
    options?: LiveOptions<I>,
  ): Live<number | Extract<I, undefined>, [query: LiveRange<K> & { as: 'count' }]>;
  live<I extends K[] | undefined = undefined>(
    query: LiveRange<K> & { as: 'keys' },
    options?: LiveOptions<I>,
  ): Live<K[] | Extract<I, undefined>, [query: LiveRange<K> & { as: 'keys' }]>;
  live<I extends V[] | undefined = undefined>(
    query: LiveRange<K> & { as: 'values' },
    options?: LiveOptions<I>,
  ): Live<V[] | Extract<I, undefined>, [query: LiveRange<K> & { as: 'values' }]>;
  live<I extends [K, V][] | undefined = undefined>(
    query: LiveRange<K>,
    options?: LiveOptions<I>,
  ): Live<[K, V][] | Extract<I, undefined>, [query: LiveRange<K>]>;
  live(key: K, options?: LiveOptions<V>): Live<V | undefined, [key: K]>;
  live(query: LiveTarget<K, V>, options?: KeyRange<K> & LiveOptions<unknown>): Live<unknown> {
    const prepare = (given: LiveTarget<K, V>, watched: KeyRange<K> = {}): LiveRun => {
      const isFunction = typeof given === 'function';
      const isOfRange = isRange<K, LiveRange<K>>(given as K, this.#operations.codec, LIVE);
      if (!isFunction) checkOptions(watched, FIRST);
      const range: LiveRange<K> = isFunction ? watched : isOfRange ? (given as LiveRange<K>) : this.#only(given as K);
      // The range is encoded here, at the call, not when the query runs.
      const bytes = encodeRange(range, this.#operations.codec, isFunction ? LIVE_READ : LIVE);
      const { as, reverse, limit } = range;
      const query = given as (view: Snapshot<K, V>) => unknown;
      const target = isFunction ? query : isOfRange ? { as, reverse, limit } : undefined;
      const operations = this.#operations;
      const wanted = { client: this.#client, store: this, operations, target, bytes, now: changesNow };
      return async (emit, signal) => (await loaders.live()).keepLive(wanted, emit, signal);
    };
    return liveQuery(prepare, options?.initial, query, options);
  }

  /**
   * Returns the value of a key at once, if it is in this tab's cache and is the newest one; otherwise undefined. So a function that
   * renders can use it. The cache has what was read or written here shortly before: see `open({ cache })`. Throws for an invalid key.
   *
   * @example
   * const note = db.peek(['note', id]) ?? use(db.get(['note', id]));
   */
  peek(key: K): V | undefined {
    return this.#cache?.peek(key);
  }

  /** @internal Answers reads from at most this many bytes that are kept here. Until the code has come, the engine answers them. */
  cacheReads(bytesMax: number): void {
    loaders.cache().then(
      ({ ReadCache }) => {
        this.#cache = new ReadCache(this.#client, this.#operations, bytesMax);
      },
      () => undefined,
    );
  }

  /**
   * Returns statistics of the store as it is now.
   *
   * @example
   * const { levels } = await db.stats();
   */
  async stats(): Promise<StoreStats> {
    const stats = (await this.#client.ask({ type: 'call', method: 'stats', args: [] })) as StoreStats;
    const { sharing } = stats;
    const { via } = this.#client;
    if (sharing === undefined || via === undefined) return stats;
    return { ...stats, sharing: { ...sharing, via, leads: via === 'worker' } };
  }

  /**
   * Flushes all writes acknowledged so far, so that they are as durable as `strict` writes.
   *
   * @example
   * await db.setMany(rows);
   * await db.flush();
   */
  async flush(options?: WaitOptions): Promise<void> {
    checkOptions(options, WAIT);
    return this.#client.submit(syncOperation, undefined, undefined, 0, options?.signal);
  }

  /**
   * Asks the browser never to clear this origin's storage by itself; resolves with true if it agreed. Firefox asks the user; Chromium
   * and Safari decide by how the site is used. Browsers answer in pages only: elsewhere the result is false.
   *
   * @example
   * if (!(await db.persist())) offerExport(); // it may be gone when the device runs out of room
   */
  async persist(): Promise<boolean> {
    return (await globalThis.navigator?.storage?.persist?.()) === true;
  }

  /**
   * Merges all tables now, and drops overwritten and deleted entries. The store also does this by itself, in the background.
   * Reads and writes continue meanwhile; the merge may not contain writes made while it runs.
   *
   * @example
   * await db.clear();
   * await db.compact({ onProgress: ({ done, planned }) => show(done / planned) }); // the space is free
   */
  async compact(options: CompactOptions = {}): Promise<void> {
    checkOptions(options, COMPACT);
    const { onProgress } = options;
    // In a separate microtask: an error that the callback throws must not reach the connection.
    const progress = (value: unknown): void => queueMicrotask(() => onProgress?.(value as CompactProgress));
    await this.#client.ask({ type: 'call', method: 'compact', args: [] }, progress);
  }

  /**
   * Verifies every block and every record of the store, in a separate worker, while reads and writes continue. It changes
   * nothing. Problems are listed in the report, not thrown. Use `repair` to salvage a store that has problems.
   *
   * @example
   * const { ok, problems } = await db.check({ onProgress: ({ done, total }) => show(done / total) });
   * if (!ok) console.warn(problems); // [{ file: 'table 12', kind: 'block', message: 'block checksum', offset: 40960, level: 6 }]
   */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    checkOptions(options, CHECK);
    const { onProgress, signal, tools } = options;
    const number = ++this.#checks;
    const request = { number, tools: tools === undefined ? undefined : wasmPlace(tools) };
    const progress = (value: unknown): void => queueMicrotask(() => onProgress?.(value as ToolsProgress));
    const call = (method: 'check' | 'stop', ...args: unknown[]): Promise<unknown> =>
      this.#client.ask({ type: 'call', method, args }, progress);
    return untilAborted(call('check', request) as Promise<CheckReport>, signal, () => call('stop', number));
  }

  /**
   * Exports the store as it is at this call, or a range of it, as a stream of bytes. `import` reads it, on any storage and runtime.
   * Each block has a checksum; keys, values and expiries are copied as they are stored. Index entries of collections are left out,
   * because they follow from the documents. A failure, or an abort of the signal, ends the stream with an error. The export keeps a
   * snapshot open until the stream ends or is cancelled.
   *
   * @example
   * await db.export().pipeTo(await file.createWritable());
   * await fetch('/backup', { method: 'PUT', body: db.export({ prefix: ['note'] }), duplex: 'half' });
   */
  export(options: ExportOptions<K> = {}): ReadableStream<Uint8Array> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const begin = async (): Promise<void> => {
      const range = encodeRange(options, this.#operations.codec, EXPORT);
      const { signal, onProgress } = options;
      const [{ exportTo, rawStore }, snapshot] = await Promise.all([loaders.portable(), this.snapshot()]);
      return exportTo(rawStore(this.#parts()), snapshot, writable, { range, signal, onProgress });
    };
    begin().catch((error) => writable.abort(error));
    return readable;
  }

  /**
   * Reads an export into this store, which must be empty (unless `merge: true`). Each block is verified before any of it is
   * applied; a damaged or truncated export rejects with `VARVE_CORRUPT` and the offset. If an import was interrupted, import the same
   * export again: it continues where it stopped. Give a function that opens the export at an offset, or give the whole export. The
   * store gets the export's `version`; if the store has another version, the import rejects with `VARVE_VERSION`. Indexes of
   * collections whose documents are imported are rebuilt before their next use.
   *
   * @example
   * await db.import(file.stream(), { onProgress: ({ bytes }) => show(bytes / file.size) });
   * await db.import((offset) => file.slice(offset).stream());
   */
  async import(source: ImportSource, options?: ImportOptions): Promise<ImportReport> {
    const { importFrom, rawStore } = await loaders.portable();
    return importFrom(rawStore(this.#parts()), source, options);
  }

  /**
   * Waits for running operations, flushes their writes, seals the store and ends its worker. A second call has no further effect.
   *
   * @example
   * await using db = await open('notes'); // closed at the end of the block
   */
  close(): Promise<void> {
    this.#onClose();
    return this.#client.close();
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  #follow(range: ByteRange, { keysOnly = false, signal, since }: ChangesOptions<K>): ChangeIterator<K, V> {
    if (since !== undefined) checkSince(since);
    this.#client.ensureOpen();
    signal?.throwIfAborted();
    const wanted = { range, since: since ?? this.#now(), keysOnly, signal };
    const parts = { client: this.#client, operations: this.#operations };
    return new ChangesIterator(loaders.changes().then(({ follow }) => follow(parts, wanted)));
  }

  /** The range of one key. */
  #only(key: K): { gte: K; lte: K } {
    const plain = this.#operations.keys.plain(key);
    return { gte: plain, lte: plain };
  }

  /** The sequence of the store at this call. */
  #now(): Promise<number> {
    const sequence = this.#client.submit(changesNow, undefined, undefined, 0);
    // A caller that waits for it gets the error.
    sequence.catch(() => undefined);
    return sequence;
  }

  /** The parts of the store that exports and imports use. */
  #parts(): PortableParts {
    return { client: this.#client, Cursor, scan: scanEntries, level: this.#level };
  }

  /** Starts a batch; `known` has the options that its commit takes. */
  #batch(known?: Known<WriteOptions>): Batch<K, V> {
    return new Batch(this.#operations, async (end, options) => {
      const level = this.#levelOf(options, known);
      try {
        return await this.#client.submit(batchOperation, undefined, end().view(), level, options?.signal);
      } catch (error) {
        throw namedConflict(error, this.#operations.keys);
      }
    });
  }

  /** Commits a batch of the writes that `collect` adds. */
  async #collected(
    collect: (batch: Batch<K, V>) => Batch<K, V>,
    options?: WriteOptions,
    known?: Known<WriteOptions>,
  ): Promise<Receipt> {
    return collect(this.#batch(known)).commit(options);
  }

  /** The parts of the store that transactions and updates use. */
  #transactions(options: WriteOptions | undefined, known: Known<WriteOptions>): UpdateParts<K, V> {
    const level = this.#levelOf(options, known);
    return { client: this.#client, operations: this.#operations, level, owner: this };
  }

  #write<A, B>(
    operation: Operation<A, B, Receipt>,
    key: A,
    value: B,
    options?: WriteOptions,
    known?: Known<WriteOptions>,
  ): Promise<Receipt> {
    try {
      return this.#client.submit(operation, key, value, this.#levelOf(options, known), options?.signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The number of the durability level of a write. Throws for invalid options. */
  #levelOf(options: WriteOptions | undefined, known?: Known<WriteOptions>): number {
    const durability = durabilityOf(options, known);
    return durability === undefined ? this.#level : levelNumber(durability);
  }
}
