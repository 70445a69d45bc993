/**
 * `varve/synchronous`: the store for code that already runs in a dedicated worker. Every operation returns at once.
 *
 * Invariant: the same store, files and semantics as `varve`; only one of the two has a store open at a time.
 */

import { userKeyOf } from './encryption/user-key.ts';
import { EngineHost } from './engine/engine-host.ts';
import { keySlots } from './engine/key-slots.ts';
import { spawnCompactor } from './engine/spawn-compactor.ts';
import { VarveError } from './errors.ts';
import { checkOptions, type Known, withKeyOfNow } from './options.ts';
import { deleteShared } from './share/delete-store.ts';
import { isAdapter } from './storage/adapter.ts';
import { listStores as listNames } from './storage/stores.ts';
import {
  CHECK_CLOSED,
  checkName,
  DELETE,
  LIST,
  lockTimeoutOf,
  OPEN_ANY,
  REPAIR,
  resolveOptions,
} from './store/options.ts';
import { checkRequest, repairRequest } from './store/repair-request.ts';
import { SyncStore } from './synchronous/store.ts';
import type { SyncUpgrade } from './synchronous/transaction.ts';
import { repairStore } from './tools/repair.ts';
import type {
  CheckReport,
  ClosedStoreOptions,
  RepairReport,
  RepairOptions as RepairToolsOptions,
} from './tools/types.ts';
import type { CommonOpenOptions, DeleteStoreOptions, Key, ListStoresOptions } from './types.ts';

/** Options of `check`. */
export interface CheckStoreOptions extends ClosedStoreOptions, ListStoresOptions {}

/** Options of `repair`. */
export interface RepairOptions extends RepairToolsOptions, ListStoresOptions {}

/** Options of `open`. `K` and `V` follow the codecs. */
export interface OpenOptions<K = Key, V = unknown> extends CommonOpenOptions<K, V, SyncUpgrade<K, V>> {
  /** Flush and compact in a separate worker (true), or in slices on this one (false). Default true. */
  compactor?: boolean | undefined;
}

/**
 * Opens a store, and creates it if it does not exist.
 *
 * @example
 * const db = await open('notes');
 * db.set(['note', 42], { title: 'Silt' });
 * for (const [key, value] of db.entries({ prefix: ['note'] })) console.log(key, value);
 *
 * @throws `VARVE_LOCKED` when another tab or worker has it open for longer than `lockTimeout`; `VARVE_CORRUPT`, `VARVE_VERSION` (also
 * for a `version` lower than the store's), any error that `upgrade` throws,
 * `VARVE_STORAGE_FULL`, `VARVE_UNAVAILABLE`, `VARVE_UNSUPPORTED`; the signal's `reason` when it aborts.
 */
export async function open<K = Key, V = unknown>(
  name: string,
  options: OpenOptions<K, V> = {},
): Promise<SyncStore<K, V>> {
  const known: Known<OpenOptions<never, never>> = { ...OPEN_ANY, compactor: 1 };
  const engine = resolveOptions(name, options, known);
  // A copy: the caller may change its options while the store opens.
  const given = { ...options };
  const { signal, compactor = true, version, upgrade, storage } = given;
  const { encryption } = withKeyOfNow(options);
  if (encryption !== undefined) engine.key = await userKeyOf(encryption);
  const spawn = compactor ? spawnCompactor : undefined;
  const adapter = isAdapter(storage) ? storage : undefined;
  const host = await EngineHost.open(name, {
    ...engine,
    adapter,
    signal,
    compactor: spawn,
    slices: !compactor,
    keySlots,
  });
  if (host.deferred !== undefined) {
    await host.close();
    throw unsupported();
  }
  const store = new SyncStore<K, V>(host, given, given.durability, engine);
  if (version === undefined) return store;
  try {
    store.upgradeTo(version, upgrade);
    return store;
  } catch (error) {
    // The reason why the upgrade failed matters more than an error of `close`.
    await store.close().catch(() => undefined);
    throw error;
  }
}

/**
 * The names of this origin's stores, sorted.
 *
 * @example
 * const names = await listStores(); // ['counters', 'notes']
 */
export async function listStores(options: ListStoresOptions = {}): Promise<string[]> {
  checkOptions(options, LIST);
  options.signal?.throwIfAborted();
  return listNames(options.storage);
}

/**
 * Deletes a store with all its data; resolves with true if it existed. Rejects with `VARVE_LOCKED` when it stays open
 * somewhere for longer than `lockTimeout` milliseconds (default 5000).
 *
 * @example
 * await deleteStore('counters');
 */
export async function deleteStore(name: string, options: DeleteStoreOptions = {}): Promise<boolean> {
  checkName(name);
  checkOptions(options, DELETE);
  const lockTimeout = lockTimeoutOf(options);
  return deleteShared(name, { lockTimeout, signal: options.signal }, options.storage);
}

/** Checks a store that is not open: see `check` of `varve`. It runs on this worker, in slices. */
export async function check(name: string, options: CheckStoreOptions = {}): Promise<CheckReport> {
  checkOptions(options, CHECK_CLOSED);
  return (await onClosed(name, checkRequest(name, options), options)) as CheckReport;
}

/**
 * Salvages the readable data of a damaged store into a new store, and reports what is lost: see `repair` of `varve`. It runs on
 * this worker, in slices.
 *
 * @example
 * const { name, lost } = await repair('notes'); // 'notes-repaired'
 */
export async function repair(name: string, options: RepairOptions = {}): Promise<RepairReport> {
  checkOptions(options, REPAIR);
  return (await onClosed(name, repairRequest(name, options), options)) as RepairReport;
}

async function onClosed(
  name: string,
  request: ReturnType<typeof checkRequest>,
  options: CheckStoreOptions,
): Promise<CheckReport | RepairReport> {
  const adapter = isAdapter(options.storage) ? options.storage : undefined;
  const { encryption } = withKeyOfNow(options);
  const key = encryption && (await userKeyOf(encryption));
  return repairStore(name, { ...request, key }, options, adapter);
}

function unsupported(): VarveError {
  return new VarveError('VARVE_UNSUPPORTED', 'This storage answers later, which a synchronous store cannot wait for.');
}

export * from './common.ts';
export { deriveKey } from './encryption/user-key.ts';
export type { Batch } from './store/batch.ts';
export type { SyncTransactionHandle } from './synchronous/begin.ts';
export type { SyncReadView, SyncSnapshot } from './synchronous/snapshot.ts';
export type { SyncStore } from './synchronous/store.ts';
export type { SyncTransaction, SyncUpgrade } from './synchronous/transaction.ts';
export type { SyncBatch, SyncView } from './synchronous/view.ts';
