/**
 * The public types and options of Varve: keys, codecs, ranges, receipts, reports.
 * Invariant: types only; nothing here exists at run time, so every room of the house may import it.
 */

import type { StorageAdapter } from './storage/adapter.ts';

/**
 * A key. Keys have one total order, which their bytes keep:
 * Uint8Array < string (by UTF-8) < number < bigint < boolean < Date < array of keys (element by element).
 * `-0` is `0`; `NaN`, invalid dates and lone surrogates are refused with `VARVE_INVALID_KEY`.
 * Content is at most 65,536 bytes. `k` and `[k]` are different keys.
 */
export type Key = Uint8Array | string | number | bigint | boolean | Date | readonly Key[];

/** How durable a write is when its promise resolves. */
export type Durability =
  /** At once; logged together with the next logged write, so what survives a crash is always a prefix. */
  | 'memory'
  /** Handed to the operating system: survives the death of tab, worker and browser; flushed within 100 ms. */
  | 'relaxed'
  /** Flushed to the disk: survives power loss. */
  | 'strict';

/** Turns values into bytes and back. `name` goes into error messages. */
export interface ValueCodec<V> {
  readonly name: string;
  /** Bytes of the value; the array is copied before the call returns to you. Throws when it cannot. */
  encode(value: V): Uint8Array;
  /** The value of bytes that `encode` made. `bytes` is a view: copy what you keep. */
  decode(bytes: Uint8Array): V;
}

/** Maps your key type onto Varve keys (whose order is the store's order) and back. */
export interface KeyCodec<K> {
  readonly name: string;
  encode(key: K): Key;
  decode(key: Key): K;
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

/** What a scan walks over. */
export interface ScanOptions<K = Key> extends KeyRange<K> {
  /** Last key first. Default false. */
  reverse?: boolean | undefined;
  /** At most this many entries: an integer from 0. Default: no limit. */
  limit?: number | undefined;
  /** Ends the scan with `VARVE_ABORTED`. */
  signal?: AbortSignal | undefined;
}

/** Options of everything that waits for the engine. */
export interface WaitOptions {
  /** Stops waiting with `VARVE_ABORTED`. A write already sent may still be applied. */
  signal?: AbortSignal | undefined;
}

/** Options of one write. */
export interface WriteOptions extends WaitOptions {
  /** Default: the store's `durability`. */
  durability?: Durability | undefined;
}

/** What a write may depend on. */
export interface Condition {
  /**
   * Write only if the key's entry has this sequence (from `getEntry` or a receipt), or, with null, only if there is none;
   * else `VARVE_CONFLICT`, whose `conflict` names the key and the sequence found, and nothing is written.
   */
  ifSequence?: number | null | undefined;
}

/** How long an entry lives; it then reads as absent. Default: for ever. */
export interface Lifetime {
  /** How long the entry lives from when it is applied, in milliseconds, above 0. */
  expiresIn?: number | undefined;
  /** When the entry expires, instead of `expiresIn`: a Date, or milliseconds since 1970. */
  expiresAt?: Date | number | undefined;
}

/** The lifetime of an entry that is updated. Default: it expires when it would have expired without the update. */
export interface UpdateLifetime extends Omit<Lifetime, 'expiresIn'> {
  /** A new lifetime; null: the entry lives for ever. */
  expiresIn?: number | null | undefined;
}

/** What one set of a batch can be given. */
export interface SetItemOptions extends Condition, Lifetime {}

/** Options of `set`. */
export interface SetOptions extends WriteOptions, SetItemOptions {}

/** Options of `delete`. */
export interface DeleteKeyOptions extends WriteOptions, Condition {}

/** Options of `update`. */
export interface UpdateOptions extends WriteOptions, UpdateLifetime {}

/** Options of `transaction`. */
export interface TransactionOptions extends WriteOptions {
  /** How often it is tried again after a conflict, before `VARVE_CONFLICT` is told: an integer from 0. Default 100, some ten seconds. */
  retries?: number | undefined;
}

/** What `upgrade` is told. */
export interface UpgradeVersions {
  /** The version that the store had; 0 for a new store, and for one that was never opened with a version. */
  readonly oldVersion: number;
  /** The version that it is being opened with. */
  readonly newVersion: number;
}

/** What a write resolves with. */
export interface Receipt {
  /** The sequence of the write (of the last entry of a batch): grows with every write, below 2^53. */
  readonly sequence: number;
  /** The level reached; `buffered` (sync API only) becomes `relaxed` at the end of the turn. */
  readonly durability: Durability | 'buffered';
}

/** What `getEntry` resolves with. */
export interface Entry<V> {
  readonly value: V;
  /** The sequence of the write that made this value. */
  readonly sequence: number;
  /** When the entry expires, or undefined when it does not. */
  readonly expires: Date | undefined;
}

/** Where a store keeps its files: OPFS, IndexedDB, or memory (gone when the store closes). */
export type StorageKind = 'opfs' | 'indexeddb' | 'memory';

/** The storage in use, and why not a better one. */
export interface StorageReport {
  /** A `StorageKind`, or what an adapter calls itself. */
  readonly kind: StorageKind | (string & {});
  /** Why it is not a better one; undefined when it is the best, or was asked for. */
  readonly reason?: string | undefined;
}

/** What the browser says of an origin's storage. */
export interface OriginStorage {
  /** Bytes in use by everything of the origin, about. */
  readonly usageBytes: number;
  /** Bytes that the origin may use, about. */
  readonly quotaBytes: number;
  /** Whether only the user can clear it, and not the browser for want of room; undefined where the browser does not tell. See `persist`. */
  readonly persisted?: boolean | undefined;
}

/** How a store is shared with other tabs. */
export interface SharingReport {
  /** Whether this tab's worker has the engine. */
  readonly leads: boolean;
  /** How this tab reaches it: its own worker, a port to another tab's, or a BroadcastChannel. */
  readonly via: 'worker' | 'port' | 'channel';
  /** Clients that the leader serves, this one included. */
  readonly clients: number;
}

/** What `open` found. */
export interface RecoveryReport {
  /**
   * `new`: nothing was there. `clean`: a sealed store. `replayed`: the log was replayed. `torn`: its torn tail was dropped. `lost`: nothing
   * is there, but there was a store, as a note in the origin's other storage says: the browser, or somebody, cleared the one
   * and not the other. (Where all of the origin was cleared, which is what browsers do when they need room, that reads as `new`.)
   */
  readonly state: 'new' | 'clean' | 'replayed' | 'torn' | 'lost';
  /** Log records replayed into the memtable. */
  readonly records: number;
  /** Readable records behind a torn one, dropped with it so that what is left is a prefix of history. */
  readonly recordsDropped: number;
}

/** One level of the tree. */
export interface LevelStats {
  readonly tables: number;
  readonly bytes: number;
  /** Entries in its tables, tombstones and older versions included. */
  readonly entries: number;
  /** Bytes it may hold before tables leave it for the next level; 0 for a level that is passed over. */
  readonly target: number;
  /** How full it is: from 1 on a compaction is due, the fullest level first. In level 0 the number of tables counts too. */
  readonly score: number;
}

/** How far a `compact()` is. */
export interface CompactProgress {
  /** Bytes of tables taken in so far. */
  readonly done: number;
  /** Bytes to take in altogether, about. */
  readonly planned: number;
}

/** Options of `compact`. */
export interface CompactOptions {
  /** Called now and then while it runs, and once at its end. */
  onProgress?: ((progress: CompactProgress) => void) | undefined;
}

/**
 * A picture of a store at one moment. Sizes are in bytes; counts are of this session (since `open`) where they count
 * events; a time is in milliseconds since 1970, 0 for never in this session.
 */
export interface StoreStats {
  /** Of a store that its tabs share. */
  readonly sharing?: SharingReport | undefined;
  /** What the browser says of the storage of the whole origin; undefined where it does not, of other storages than the browser's, and in `varve/sync`. */
  readonly origin?: OriginStorage | undefined;
  /** Sequence of the last write. */
  readonly sequence: number;
  readonly memtableEntries: number;
  readonly memtableBytes: number;
  /** Size at which the memtable is frozen and flushed to a table. */
  readonly memtableBytesMax: number;
  /** Memtables waiting for their flush. */
  readonly frozen: number;
  readonly frozenBytes: number;
  readonly walSegments: number;
  /** Bytes in the segment being written. */
  readonly walSegmentBytes: number;
  /** Bytes logged. */
  readonly walBytes: number;
  /** Times the log was flushed to the disk. */
  readonly walSyncs: number;
  readonly writes: number;
  /** Level 0 first. */
  readonly levels: readonly LevelStats[];
  /** Blocks of tables kept in memory. */
  readonly cacheBytes: number;
  /** What memtables leave of the memory: the bound of `cacheBytes` and `residentBytes` together. */
  readonly cacheBytesMax: number;
  readonly cacheHits: number;
  readonly cacheMisses: number;
  /** Filters of tables that gets asked: each says whether its table may hold the key. */
  readonly filterChecks: number;
  /** Those that said no, which saved a look into their table. */
  readonly filterNegatives: number;
  /** Indexes and filters of open tables. */
  readonly residentBytes: number;
  /** Flushed memtables that only snapshots and iterators still read. */
  readonly retainedBytes: number;
  /** The `memory` option: the bound of memtables (these included), cache and open tables together. */
  readonly memoryBytesMax: number;
  readonly flushes: number;
  readonly flushBytes: number;
  readonly lastFlushAt: number;
  readonly compactions: number;
  readonly compactionBytesRead: number;
  readonly compactionBytesWritten: number;
  /** Entries that flushes and compactions found shadowed or deleted and left out. */
  readonly entriesDropped: number;
  readonly lastCompactionAt: number;
  /** Tables that went a level down without being rewritten. */
  readonly moves: number;
  /** Tables that a deleted range covered as a whole, dropped without being read. */
  readonly drops: number;
  /** 1 while a `compact()` is under way. */
  readonly compacting: number;
  /** Bytes that the last `compact()` has taken in, of `compactBytesMax`. */
  readonly compactBytes: number;
  readonly compactBytesMax: number;
  /** Bytes written to tables for each byte flushed to one. */
  readonly writeAmplification: number;
  /**
   * 1 while writers wait: `frozenMax` memtables wait and the active one is half full, or level 0 has `levelZeroStall` tables, or it is four
   * times as long as when it is merged and much of it is overwritten.
   */
  readonly stalled: number;
  readonly frozenMax: number;
  /** Tables in level 0 that start a compaction. */
  readonly levelZeroTrigger: number;
  readonly levelZeroStall: number;
  /** What the store takes on disk. */
  readonly diskBytes: number;
  /** Scans that are open. */
  readonly cursors: number;
  /** Snapshots that are open: each keeps memory and files of its moment. */
  readonly snapshots: number;
  /** Age of the oldest of them, in milliseconds; 0 without one. */
  readonly snapshotAge: number;
  /** Files that wait to be deleted. */
  readonly obsoleteFiles: number;
  /** How often the store was opened. */
  readonly epoch: number;
}

/** Options of the engine itself; they travel to the worker as they are. */
export interface EngineOptions {
  /** Default level of writes. `memory` for a store means: no log at all. Default `relaxed`. */
  durability?: Durability | undefined;
  /** Where to keep the files. Default: where the store is; a new one in the first of `opfs`, `indexeddb` and `memory` that is to be had. */
  storage?: StorageKind | undefined;
  /** How long to wait for another holder of the store, in milliseconds. Default 5000. */
  wait?: number | undefined;
  /**
   * Budget of memtables, cached blocks, indexes and filters together, in bytes. Default 32 MiB, at least 1 MiB. Indexes and filters
   * take about 2 bytes a key. Where they do not fit, most of the store does without filters: a `get` of an absent key then reads a
   * block. Where indexes alone do not fit, a `get` may have to read one.
   */
  memory?: number | undefined;
  /**
   * How far back `changes` can go, in bytes of the log, besides what is not yet in tables (2 to 8 MiB of the newest writes). Default: 1/32 of
   * the bytes of the tables and at most 8 MiB; and, while somebody follows the changes, at least the last segment of the log (2 to
   * 4 MiB). It takes at most an eighth of the room that is left, and is given up before a write is refused for want of room. Default of `varve/sync`, which
   * tells no changes: 0.
   */
  history?: number | undefined;
}

/** How `open({ cache })` keeps values in the tab. Without a number, the default. */
export interface CacheOptions {
  /** Values kept at most. Default 1000. */
  entries?: number | undefined;
  /** Bytes of keys and values kept at most. Default 4 MiB. */
  bytes?: number | undefined;
  /** How long a value may be answered without asking the store, in milliseconds. Default 5000. */
  ttl?: number | undefined;
}

/** Options of `open`. `K` and `V` follow the codecs. */
export interface OpenOptions<K = Key, V = unknown> extends Omit<EngineOptions, 'storage'>, WaitOptions {
  /**
   * Where to keep the files. Default: where the store is; a new one in the first of `opfs`, `indexeddb` and `memory` that is to be
   * had here, and `db.storage` says which and why. A name takes that one or none (`VARVE_UNSUPPORTED`); on a server there is none
   * but `memory`, which must be asked for. With an adapter the engine runs in the caller's realm, without a worker: on a server
   * runtime, in a Durable Object.
   */
  storage?: StorageKind | StorageAdapter | undefined;
  /** Maps your keys onto Varve keys. Default: keys are Varve keys. */
  keys?: KeyCodec<K> | undefined;
  /** Turns values into bytes. Default: `structured`. */
  values?: ValueCodec<V> | undefined;
  /**
   * The version of what you keep in the store, an integer from 1. A new store has 0; one with a lower version is upgraded,
   * one with a higher is refused with `VARVE_VERSION`. Default: the version is neither asked for nor changed.
   */
  version?: number | undefined;
  /**
   * Answers `get`, `getMany` and `has` from values kept in this tab. Off by default. What this tab writes is seen by its reads at
   * once, as always; what another tab has committed may be missed until its change has arrived here, which takes milliseconds, and
   * for `ttl` at most. The values of one `getMany` need then not be of one moment. Snapshots, transactions, scans, `getEntry` and
   * `update` always ask the store.
   */
  cache?: CacheOptions | undefined;
  /** The engine worker: a URL of its script, or a function that makes the worker. Default: the script beside this module. */
  worker?: string | URL | ((name: string) => Worker) | undefined;
  /** Where the wasm file is. Default: beside the worker script. */
  wasm?: string | URL | WebAssembly.Module | undefined;
}
