/**
 * The public types and options of Varve: keys, codecs, ranges, receipts, reports.
 * Invariant: types only; nothing here exists at run time, so every module may import it.
 */

import type { EncryptionOptions } from './encryption/types.ts';
import type { StorageAdapter } from './storage/adapter.ts';

/**
 * A key. Keys have one total order, which their bytes keep:
 * Uint8Array < string (by UTF-8) < number < bigint < boolean < Date < array of keys (element by element).
 * `-0` is `0`; `NaN`, invalid dates and lone surrogates are refused with `VARVE_INVALID_KEY`.
 * Content is at most 65,536 bytes. `k` and `[k]` are different keys.
 */
export type Key = Uint8Array | string | number | bigint | boolean | Date | readonly Key[];

/** A result that an asynchronous store returns as a promise, and a synchronous store directly. */
export type Eventual<T> = T | PromiseLike<T>;

/** How durable a write is when its promise resolves. */
export type Durability =
  /** Resolves at once. The write is logged together with the next logged write: after a crash the store has a prefix of all writes. */
  | 'memory'
  /** Handed to the operating system: survives a crash of tab, worker and browser; flushed within 100 ms. */
  | 'relaxed'
  /** Flushed to the disk: survives power loss. */
  | 'strict';

/** Turns values into bytes and back. `name` appears in error messages. */
export interface ValueCodec<V> {
  readonly name: string;
  /** Returns the bytes of the value. Varve copies the array before the write call returns. Throws if the value cannot be encoded. */
  encode(value: V): Uint8Array;
  /** Returns the value of bytes that `encode` made. `bytes` is a view: copy the parts that you keep. */
  decode(bytes: Uint8Array): V;
}

/** A codec that comes with Varve. Its `encode` returns the bytes as they are stored. */
export interface BuiltInCodec<V> extends ValueCodec<V> {
  /**
   * Returns the same codec, typed for values of type `T`. Nothing is checked at run time.
   *
   * @example
   * const db = await open('notes', { values: structured.as<Note>() }); // Store<Key, Note>
   */
  as<T extends V>(): ValueCodec<T>;
}

/** Maps your key type onto Varve keys (whose order is the store's order) and back. */
export interface KeyCodec<K> {
  readonly name: string;
  encode(key: K): Key;
  decode(key: Key): K;
}

/** Options of a view. `K` and `V` follow the codecs. */
export interface ViewOptions<K = Key, V = unknown> {
  /** Maps the keys of the view onto Varve keys, relative to the prefix. Default: keys are Varve keys. */
  keys?: KeyCodec<K> | undefined;
  /** Turns values into bytes. Default: as outside of the view. */
  values?: ValueCodec<V> | undefined;
}

/** A range of keys. At most one of `gt`/`gte` and one of `lt`/`lte`; `prefix` narrows them further. */
export interface KeyRange<K = Key> {
  /** Only keys after this one. */
  gt?: K | undefined;
  /** Only this key and keys after it. */
  gte?: K | undefined;
  /** Only keys before this one. */
  lt?: K | undefined;
  /** Only this key and keys before it. */
  lte?: K | undefined;
  /** An array matches itself and longer arrays by element; a string or bytes match by content. */
  prefix?: string | Uint8Array | readonly Key[] | undefined;
}

/** Options of a scan: its range, its direction and its limit. */
export interface ScanOptions<K = Key> extends KeyRange<K> {
  /** Last key first. Default false. */
  reverse?: boolean | undefined;
  /** At most this many entries: an integer, at least 0. Default: no limit. */
  limit?: number | undefined;
  /** Ends the scan with the signal's `reason`. */
  signal?: AbortSignal | undefined;
}

/** Options of every call that waits for the engine. */
export interface WaitOptions {
  /** Stops waiting: the call rejects with the signal's `reason`, as `fetch` does. A write already sent may still be applied. */
  signal?: AbortSignal | undefined;
}

/** Options of `count`. */
export interface CountOptions<K = Key> extends KeyRange<K>, WaitOptions {}

/** Options of one write. */
export interface WriteOptions extends WaitOptions {
  /**
   * The durability level to reach. Default: the store's `durability`; if that is `relaxed`, a write of `varve/synchronous` returns as
   * `buffered`.
   */
  durability?: Durability | undefined;
}

/** A condition of a write. */
export interface Condition {
  /**
   * Write only if the key's entry has this sequence (from `getEntry` or a receipt); with null, only if there is no entry. Otherwise
   * nothing is written, and the call fails with `VARVE_CONFLICT`, whose `conflict` has the key and the sequence found. Undefined is
   * refused with `VARVE_INVALID_ARGUMENT`.
   *
   * @example
   * const entry = await db.getEntry(key);
   * await db.set(key, next(entry?.value), { ifSequence: entry?.sequence ?? null });
   */
  ifSequence?: number | null;
}

/** How long an entry is there. After that it reads as absent. Default: for ever. */
export interface Lifetime {
  /** How long the entry is there after the write is applied, in milliseconds, above 0. */
  expiresIn?: number | undefined;
  /** When the entry expires, instead of `expiresIn`: a Date, or milliseconds since 1970. */
  expiresAt?: Date | number | undefined;
}

/** The lifetime of an entry that is updated. Default: the entry keeps its expiry. */
export interface UpdateLifetime extends Omit<Lifetime, 'expiresIn'> {
  /** A new lifetime; null: the entry never expires. */
  expiresIn?: number | null | undefined;
}

/** Options of one `set` in a batch. */
export interface SetItemOptions extends Condition, Lifetime {}

/** Options of `set`. */
export interface SetOptions extends WriteOptions, SetItemOptions {}

/** Options of `delete`. */
export interface DeleteOptions extends WriteOptions, Condition {
  /** True: the receipt reports whether the key was there. That costs a read. Default false. */
  existed?: boolean | undefined;
}

/**
 * The value that `update` replaces: undefined if the key is absent. Where the values of a store have no type (`unknown`), it is not checked,
 * so that `(n = 0) => n + 1` compiles there, too.
 */
// biome-ignore lint/suspicious/noExplicitAny: nothing can be done with `unknown`, and no type can be inferred from a default.
export type OldValue<V> = unknown extends V ? any : V | undefined;

/** Options of `update`. */
export interface UpdateOptions extends WriteOptions, UpdateLifetime {}

/** Options of `transaction`. */
export interface TransactionOptions extends WriteOptions {
  /**
   * How often it is tried again after a conflict, before it fails with `VARVE_CONFLICT`: an integer, at least 0. Default 100, which
   * takes about ten seconds (no time in `varve/synchronous`, where only the function itself can cause a conflict).
   */
  retries?: number | undefined;
}

/** Options of `begin`. */
export interface BeginOptions extends WriteOptions {
  /**
   * Wait until no other exclusive transaction of this store is open, in any tab: they run one after another. Others that read or write
   * do not wait for it. Default false.
   */
  exclusive?: boolean | undefined;
}

/** The versions that `upgrade` is called with. */
export interface UpgradeVersions {
  /** The version that the store had; 0 for a new store, and for one that was never opened with a version. */
  readonly oldVersion: number;
  /** The version that the store is being opened with. */
  readonly newVersion: number;
}

/** The result of a write. */
export interface Receipt {
  /** The sequence of the write (of the last entry of a batch). It grows with every write and stays below 2^53. */
  readonly sequence: number;
  /** The durability level reached. `buffered` (synchronous stores only) becomes `relaxed` at the end of the turn. */
  readonly durability: Durability | 'buffered';
}

/** The result of a `delete` with `existed: true`. */
export interface DeleteReceipt extends Receipt {
  /** Whether the key was there when it was deleted. */
  readonly existed: boolean;
}

/** The result of `getEntry`. */
export interface Entry<V> {
  readonly value: V;
  /** The sequence of the write that set this value. */
  readonly sequence: number;
  /** When the entry expires, as `set` takes it; undefined if it does not expire. */
  readonly expiresAt: Date | undefined;
}

/** Where a store keeps its files: OPFS, IndexedDB, or memory (gone when the store closes). */
export type StorageKind = 'opfs' | 'indexeddb' | 'memory';

/** The storage in use, and why a better one is not in use. */
export interface StorageReport {
  /** A `StorageKind`, or what an adapter calls itself. */
  readonly kind: StorageKind | (string & {});
  /** Why it is not a better one; undefined when it is the best, or the caller asked for it. */
  readonly reason?: string | undefined;
}

/** The browser's report about an origin's storage. */
export interface OriginStorage {
  /** Approximate bytes in use by everything of the origin. */
  readonly usageBytes: number;
  /** Approximate bytes that the origin may use. */
  readonly quotaBytes: number;
  /**
   * True if only the user can clear it, and the browser does not clear it when it needs space. Undefined where the browser does not
   * report it. See `persist`.
   */
  readonly persisted?: boolean | undefined;
}

/** How a store is shared with other tabs. */
export interface SharingReport {
  /** Whether the engine runs in this tab's worker. */
  readonly leads: boolean;
  /** How this tab reaches the engine: its own worker, a port to another tab's worker, or a BroadcastChannel. */
  readonly via: 'worker' | 'port' | 'channel';
  /** Clients that the leader serves, this one included. */
  readonly clients: number;
}

/** The state that `open` found. */
export interface RecoveryReport {
  /**
   * `new`: there was no store. `clean`: the store was closed properly (sealed). `replayed`: the log was replayed. `torn`: the log was
   * replayed, and its torn tail was dropped. `lost`: there is no store, but a note in the origin's other storage shows that there was
   * one: the browser, or somebody, cleared one storage and not the other. (When they need space, browsers clear everything of an
   * origin; then the state is `new`.) A minor version may add a state.
   */
  readonly state: 'new' | 'clean' | 'replayed' | 'torn' | 'lost';
  /** Log records replayed into the memtable. */
  readonly records: number;
  /** Readable records after a torn one. They are dropped too, so that the remaining data is a prefix of the history. */
  readonly recordsDropped: number;
}

/** One level of the tree. */
export interface LevelStats {
  readonly tables: number;
  readonly bytes: number;
  /** Entries in its tables, tombstones and older versions included. */
  readonly entries: number;
  /** Bytes it may have before tables move to the next level; 0 for a level that is skipped. */
  readonly targetBytes: number;
  /** How full it is. At 1 or more a compaction is due; the fullest level comes first. In level 0 the number of tables counts too. */
  readonly score: number;
}

/** How far some work is. The option `onProgress` that gets it says the unit: bytes, documents or entries. */
export interface Progress {
  /** How much is done. */
  readonly done: number;
  /** How much there is to do in total. */
  readonly total: number;
}

/** Options of `compact`. */
export interface CompactOptions {
  /** Called from time to time while it runs, and once at its end, with the bytes of tables that are read. The total is approximate. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** Memtables: the newest writes, in memory. */
export interface MemtableStats {
  readonly entries: number;
  readonly bytes: number;
  /** Size at which the memtable is frozen and flushed to a table. */
  readonly maxBytes: number;
  /** Memtables waiting for their flush. */
  readonly frozen: number;
  readonly frozenBytes: number;
  /** How many memtables may wait for their flush before writers wait. */
  readonly maxFrozen: number;
  /** Flushed memtables that only snapshots and iterators still read. */
  readonly retainedBytes: number;
}

/** The log of writes that are in no table yet. */
export interface LogStats {
  readonly segments: number;
  /** Bytes in the segment being written. */
  readonly segmentBytes: number;
  /** Bytes logged. */
  readonly writtenBytes: number;
  /** How often the log was flushed to the disk. */
  readonly syncs: number;
}

/** Parts of tables that are in memory, and how often they saved a read. */
export interface TableCacheStats {
  /** Blocks of tables. */
  readonly bytes: number;
  /** Indexes and filters of open tables. */
  readonly indexBytes: number;
  /** The part of the option `memoryBytes` that memtables do not use: the limit of `bytes` and `indexBytes` together. */
  readonly maxBytes: number;
  /** Blocks found in memory. */
  readonly hits: number;
  /** Blocks read from the storage. */
  readonly misses: number;
  /** How often a `get` checked the filter of a table. A filter shows whether its table may contain the key. */
  readonly filterChecks: number;
  /** Checks with the answer no; each saved a lookup in the table. */
  readonly filterNegatives: number;
}

/** Flushes of memtables to tables. */
export interface FlushStats {
  readonly count: number;
  readonly writtenBytes: number;
  /** When the last one ended, in milliseconds since 1970; undefined if there was none. */
  readonly lastAt: number | undefined;
}

/** Merges of tables. */
export interface CompactionStats {
  readonly count: number;
  readonly readBytes: number;
  readonly writtenBytes: number;
  /** Entries that flushes and compactions dropped, because they were overwritten or deleted. */
  readonly droppedEntries: number;
  /** Tables moved one level down without being rewritten. */
  readonly movedTables: number;
  /** Tables that lay completely inside a deleted range, and were dropped without being read. */
  readonly droppedTables: number;
  /** When the last one ended, in milliseconds since 1970; undefined if there was none. */
  readonly lastAt: number | undefined;
  /** Bytes written to tables for each byte flushed to one. */
  readonly writeAmplification: number;
  /** Tables in level 0 that start a compaction. */
  readonly levelZeroTrigger: number;
  /** Tables in level 0 from which on writers wait. */
  readonly levelZeroStall: number;
  /** Whether a `compact()` is running. */
  readonly running: boolean;
  /** Bytes that the last `compact()` has read, of `plannedBytes`. */
  readonly doneBytes: number;
  readonly plannedBytes: number;
}

/** The files of a store. */
export interface DiskStats {
  /** Bytes that the store uses on disk. */
  readonly bytes: number;
  /** Files that wait to be deleted. */
  readonly obsoleteFiles: number;
}

/** Statistics of a store at one time. Counts of events are of this session (since `open`). A minor version may add fields. */
export interface StoreStats {
  /** Only for a store that tabs share. */
  readonly sharing?: SharingReport | undefined;
  /**
   * The browser's report about the storage of the whole origin. Undefined where it reports nothing, with other storages than the
   * browser's, and in `varve/synchronous`.
   */
  readonly origin?: OriginStorage | undefined;
  /** How many openings of the store changed its tables. */
  readonly epoch: number;
  /** Sequence of the last write. */
  readonly sequence: number;
  readonly writes: number;
  /**
   * Whether writers wait. They wait in four cases. `memtable.maxFrozen` memtables wait for their flush and the active one is half
   * full. Level 0 has `compaction.levelZeroStall` tables. Level 0 is larger than four times its target size, and much of it is
   * overwritten. A memtable waits for its flush and the storage is full.
   */
  readonly stalled: boolean;
  /** The option `memoryBytes`: the limit of memtables (retained ones included), cache and open tables together. */
  readonly memoryBytes: number;
  readonly memtable: MemtableStats;
  readonly log: LogStats;
  readonly flush: FlushStats;
  /** Level 0 first. */
  readonly levels: readonly LevelStats[];
  readonly compaction: CompactionStats;
  readonly cache: TableCacheStats;
  readonly disk: DiskStats;
  /** Open scans. */
  readonly scans: number;
  /** Open snapshots: each keeps the memory and files of its read point. */
  readonly snapshots: number;
  /** Age of the oldest snapshot, in milliseconds; undefined if there is none. */
  readonly snapshotAge: number | undefined;
}

/** Options of `open` that all entry points have. `K` and `V` follow the codecs; `U` is the kind of function that upgrades a store. */
export interface CommonOpenOptions<K = Key, V = unknown, U = unknown> extends WaitOptions {
  /** Default durability level of writes. `memory` for a store means: no log at all. Default `relaxed`. */
  durability?: Durability | undefined;
  /**
   * Where to keep the files. Default: where the store already is; a new store goes to the first available of `opfs`, `indexeddb` and
   * `memory`, and `db.storage` reports which one and why. If you name a storage and it is unavailable, `open` rejects with
   * `VARVE_UNSUPPORTED`. On a server only `memory` is available, and you must name it. With an adapter the engine runs in the
   * caller's realm, without a worker: on a server runtime, in a Durable Object.
   */
  storage?: StorageKind | StorageAdapter | undefined;
  /**
   * How long to wait, in milliseconds, while a worker of `varve/synchronous` has the store, or on servers any other opening. Then
   * `VARVE_LOCKED`. Default 5000. Tabs share a store, and do not wait for each other.
   */
  lockTimeout?: number | undefined;
  /**
   * Memory budget of memtables, cached blocks, indexes and filters together, in bytes. Default 32 MiB, at least 1 MiB. Indexes and
   * filters need about 2 bytes for each key. If they do not fit, most of the store has no filters: a `get` of an absent key then
   * reads a block. If the indexes alone do not fit, a `get` may have to read an index.
   */
  memoryBytes?: number | undefined;
  /**
   * How far back `changes` can go, in bytes of the log. The writes that are not yet in tables (the newest 2 to 8 MiB) are always
   * available besides. Default: 1/32 of the bytes of the tables and at most 8 MiB; and, while somebody follows the changes, at least
   * the last segment of the log (2 to 4 MiB). The history uses at most an eighth of the space that is left. It is deleted before a
   * write is refused because the storage is full. Default of `varve/synchronous`, which has no `changes`: 0.
   */
  historyBytes?: number | undefined;
  /** Maps your keys onto Varve keys. Default: keys are Varve keys. */
  keys?: KeyCodec<K> | undefined;
  /** Turns values into bytes. Default: `structured`. */
  values?: ValueCodec<V> | undefined;
  /**
   * The version of the data that you keep in the store: an integer, at least 1. A new store has version 0. A store with a lower
   * version is upgraded; one with a higher version is refused with `VARVE_VERSION`. Tabs that have the store open with a lower version
   * write no more: see `onVersionChange`. Default: the version is not checked or changed.
   */
  version?: number | undefined;
  /**
   * Upgrades the store from its present version to the given `version`. The writes of this function and the new version are one
   * transaction with `strict` durability. If the function throws, `open` rejects with that error, and the store is closed unchanged.
   */
  upgrade?: U | undefined;
  /**
   * Encrypts the store: everything in its files is unreadable without the key. A new store is made with it, and can only be opened with a
   * key from then on. `VARVE_KEY` if the key is wrong or missing, or if the store is not encrypted: see `encrypt`. Bytes are copied at the call.
   *
   * @example
   * const db = await open('notes', { encryption: { key: await deriveKey(passphrase) } });
   */
  encryption?: EncryptionOptions | undefined;
  /** Where the wasm file is. Default: beside the worker script. */
  wasm?: string | URL | WebAssembly.Module | undefined;
}

/** Options of `listStores`. */
export interface ListStoresOptions extends WaitOptions {
  /** A storage adapter. Default: the storage of the browser. */
  storage?: StorageAdapter | undefined;
}

/** Options of `deleteStore`. */
export interface DeleteStoreOptions extends ListStoresOptions, Pick<CommonOpenOptions, 'lockTimeout'> {}

// `AsyncIterableIterator` and `IterableIterator` have one parameter only before TypeScript 5.6. With three, those compilers drop them.

/** An async iterator over a scan; `return()` (or leaving the loop) closes it. */
export interface StoreIterator<T> extends AsyncIterator<T, undefined, undefined>, AsyncDisposable {
  [Symbol.asyncIterator](): StoreIterator<T>;
}

/** How an iterator over a range moves, beside `next()`. The names are those of Level. */
export interface RangeMoves<K, Items> {
  /** Up to `size` items at once, in order; an empty array at the end. */
  nextv(size: number): Items;
  /**
   * Goes on at `key`, or at the first key behind it in the direction of the scan. Keys outside the range of the iterator are never
   * found, and its `limit` counts all items. It can also go back, and go on after the end. After `return()` it does nothing. An
   * iterator of a snapshot or a transaction stays at the read point of that; one of a store goes on in the store as it is now.
   *
   * @example
   * const jobs = snapshot.entries({ prefix: ['job'] });
   * for (const day of days) {
   *   jobs.seek(['job', day]);
   *   show(await jobs.nextv(10));
   * }
   */
  seek(key: K): void;
}

/** The async iterator over a range. */
export interface RangeIterator<K, T> extends StoreIterator<T>, RangeMoves<K, Promise<T[]>> {
  [Symbol.asyncIterator](): RangeIterator<K, T>;
  /**
   * All items that are left, in order. They are in memory together: read a long range with `for await`.
   *
   * @example
   * const notes = await db.values({ prefix: ['note'], limit: 100 }).toArray();
   */
  toArray(): Promise<T[]>;
}

/** The iterator over a range of a synchronous store. */
export interface SyncRangeIterator<K, T> extends Iterator<T, undefined, undefined>, RangeMoves<K, T[]> {
  [Symbol.iterator](): SyncRangeIterator<K, T>;
}
