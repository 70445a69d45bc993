/**
 * The package `varve`: durable, ordered stores for a page, their engine in a worker.
 *
 * Invariant: importing this starts nothing; `open` makes the worker. The worker's script lies beside this file in the
 * package, and `new Worker(new URL(...))` stands here in the one form that every bundler finds.
 */

import { checkOptions, type Known, WAIT } from './options.ts';
import { isAdapter, type StorageAdapter } from './storage/adapter.ts';
import { deleteNamed, listNames, openStore, repairNamed, type Spawn } from './store/open.ts';
import type { Store } from './store/store.ts';
import type { StoreOptions } from './store/upgrade.ts';
import type { RepairReport, RepairOptions as RepairToolsOptions } from './tools/types.ts';
import type { Key, OpenOptions, WaitOptions } from './types.ts';
import { lazyPort } from './worker/lazy-port.ts';

export type {
  Change,
  ChangeIterator,
  ChangesOptions,
  DeleteChange,
  DeleteRangeChange,
  Gap,
  Live,
  LiveOptions,
  LiveRange,
  SetChange,
  WatchOptions,
} from './changes/types.ts';
export { bytes, json, structured, utf8 } from './codec/values.ts';
export { type Conflict, VarveError, type VarveErrorCode } from './errors.ts';
export type {
  ExportedBytes,
  ExportOptions,
  ImportOptions,
  ImportReport,
  ImportSource,
  PortableProgress,
} from './portable/types.ts';
export type { AdapterWait, StorageAdapter } from './storage/adapter.ts';
export { type ManagedDevice, type SlotDevice, SlotError, type SlotErrorKind } from './storage/device.ts';
export type { Batch } from './store/batch.ts';
export type { CountOptions, ReadView } from './store/read-view.ts';
export type { StoreIterator } from './store/scan-iterator.ts';
export type { Snapshot } from './store/snapshot.ts';
export type { Store } from './store/store.ts';
export type { Transaction } from './store/transaction.ts';
export type { StoreOptions, Upgrade } from './store/upgrade.ts';
export type {
  CheckOptions,
  CheckProblem,
  CheckProblemKind,
  CheckReport,
  LostPart,
  RepairReport,
  ToolsOptions,
  ToolsProgress,
} from './tools/types.ts';
export type {
  CacheOptions,
  CompactOptions,
  CompactProgress,
  Condition,
  DeleteKeyOptions,
  Durability,
  Entry,
  Key,
  KeyCodec,
  KeyRange,
  LevelStats,
  Lifetime,
  OpenOptions,
  OriginStorage,
  Receipt,
  RecoveryReport,
  ScanOptions,
  SetItemOptions,
  SetOptions,
  SharingReport,
  StorageKind,
  StorageReport,
  StoreStats,
  TransactionOptions,
  UpdateLifetime,
  UpdateOptions,
  UpgradeVersions,
  ValueCodec,
  WaitOptions,
  WriteOptions,
} from './types.ts';

/** Options of `listStores`. */
export interface ListOptions extends WaitOptions, Pick<OpenOptions, 'worker'> {
  /** An adapter, instead of what the browser has. */
  storage?: StorageAdapter | undefined;
}

/** Options of `deleteStore`. */
export interface DeleteOptions extends ListOptions {
  /** How long to wait for another holder of the store, in milliseconds. Default 5000. */
  wait?: number | undefined;
}

/** Options of `repair`. */
export interface RepairOptions extends RepairToolsOptions, Pick<OpenOptions, 'worker'> {
  /** An adapter, instead of what the browser has. */
  storage?: StorageAdapter | undefined;
}

const LIST: Known<ListOptions> = { ...WAIT, worker: 1, storage: 1 };
const DELETE: Known<DeleteOptions> = { ...LIST, wait: 1 };
const REPAIR: Known<RepairOptions> = { ...DELETE, onProgress: 1, tools: 1, into: 1, strict: 1 };

/**
 * Opens a store, making it where there is none. Its keys and values follow the codecs; with the default codecs they are
 * what the type arguments say.
 *
 * Rejects with `VARVE_LOCKED` when another tab or worker holds the store for longer than `wait`, `VARVE_CORRUPT` when its
 * files are damaged (see `repair`), `VARVE_VERSION` when newer code wrote them, `VARVE_UNSUPPORTED` where workers cannot be had,
 * `VARVE_INVALID_ARGUMENT` for a name or an option that makes no sense, `VARVE_ABORTED` when the signal aborts; with a `version`
 * that is lower than the store's, `VARVE_VERSION`, and with what `upgrade` throws.
 *
 * @example
 * const db = await open<string, number>('counters', { durability: 'strict' });
 * console.log(db.storage.kind, db.recovery.state); // 'opfs', 'clean'
 *
 * @example
 * const notes = await open('notes', {
 *   version: 2,
 *   async upgrade(tx, { oldVersion }) {
 *     if (oldVersion < 1) tx.set('settings', { theme: 'light' });
 *     if (oldVersion < 2) for await (const [key, note] of tx.entries({ prefix: ['note'] })) tx.set(key, withTags(note));
 *   },
 * });
 */
export function open<K = Key, V = unknown>(name: string, options: StoreOptions<K, V> = {}): Promise<Store<K, V>> {
  return openStore(name, options, spawnOf(options), () => import('./share/membership.ts'));
}

/**
 * The names of this origin's stores, sorted.
 *
 * @example
 * const names = await listStores(); // ['counters', 'notes']
 */
export async function listStores(options: ListOptions = {}): Promise<string[]> {
  checkOptions(options, LIST);
  return listNames(options, spawnOf(options));
}

/**
 * Deletes a store and all it holds; resolves with whether there was one. Rejects with `VARVE_LOCKED` when it stays open
 * somewhere for longer than `wait`.
 *
 * @example
 * await deleteStore('counters');
 */
export async function deleteStore(name: string, options: DeleteOptions = {}): Promise<boolean> {
  checkOptions(options, DELETE);
  return deleteNamed(name, options, spawnOf(options));
}

/**
 * Salvages what can be read of a damaged store into a new one, and tells what is lost. The damaged store, which nobody may
 * have open, is not changed. Every block and every record whose checksum holds is taken: of each key the newest version that
 * is left, with its sequence and its expiry. See `RepairReport` for what to mind about it.
 *
 * To go on under the old name, delete the damaged store and repair the repaired one into it: of a sound store, a repair is
 * a copy. (After LevelDB's RepairDB and the `.recover` of SQLite's shell.)
 *
 * Rejects with `VARVE_INVALID_ARGUMENT` when there is no such store, or one where the new one should go; `VARVE_LOCKED`,
 * `VARVE_STORAGE_FULL`, `VARVE_VERSION`, `VARVE_UNSUPPORTED` and `VARVE_ABORTED` as `open` does.
 *
 * @example
 * const { store, entries, lost } = await repair('notes'); // 'notes-repaired'
 * for (const { file, message, from, to } of lost) console.warn(file, message, from, to);
 * await deleteStore('notes');
 * await repair(store, { into: 'notes' });
 */
export async function repair(name: string, options: RepairOptions = {}): Promise<RepairReport> {
  checkOptions(options, REPAIR);
  return repairNamed(name, options, spawnOf(options));
}

function spawnOf({ worker, storage }: Pick<OpenOptions, 'worker' | 'storage'>): Spawn {
  const adapter = isAdapter(storage) ? storage : undefined;
  if (adapter !== undefined || (worker === undefined && typeof Worker !== 'function')) {
    return () => lazyPort(async () => (await import('./worker/here.ts')).engineHere(adapter));
  }
  if (typeof worker === 'function') return worker;
  if (worker === undefined)
    return () => new Worker(new URL('./engine-worker.js', import.meta.url), { type: 'module', name: 'varve' });
  return (name) => new Worker(worker, { type: 'module', name: `varve: ${name}` });
}
