/**
 * The package `varve/inline`: the API of `varve`, with the engine in the realm that imports it.
 *
 * For service workers, which may neither start workers nor import code later on, and for pages that want no worker. Where there are
 * no workers, `varve` loads the same code by itself.
 *
 * Invariant: the same stores, files and semantics. OPFS needs a dedicated worker: elsewhere new stores go to IndexedDB.
 */

import * as cache from './cache/read-cache.ts';
import * as changes from './changes/changes.ts';
import * as blobs from './client/blobs.ts';
import { loadBlobs } from './client/client.ts';
import * as index from './index.ts';
import { checkOptions, type Known } from './options.ts';
import { inlineEngine } from './server/inline.ts';
import { isAdapter, type StorageAdapter } from './storage/adapter.ts';
import * as begin from './store/begin.ts';
import * as encryption from './store/key-change.ts';
import * as live from './store/live.ts';
import { loaders } from './store/loaders.ts';
import { openStore } from './store/open.ts';
import { CHECK_CLOSED, DELETE, LIST, OPEN_INLINE, PRELOAD, REPAIR } from './store/options.ts';
import * as portable from './store/portable.ts';
import * as requests from './store/requests.ts';
import type { Store } from './store/store.ts';
import * as transactions from './store/transaction.ts';
import type { CheckReport, RepairReport } from './tools/types.ts';
import type { Key, StorageKind } from './types.ts';
import { loadEngine } from './wasm/compile.ts';

/** Options of `open`: those of `varve`, without the worker. */
export type OpenOptions<K = Key, V = unknown> = Omit<index.OpenOptions<K, V>, 'worker'>;
/** Options of `listStores`. */
export type ListStoresOptions = Omit<index.ListStoresOptions, 'worker'>;
/** Options of `deleteStore`. */
export type DeleteStoreOptions = Omit<index.DeleteStoreOptions, 'worker'>;
/** Options of `check`. */
export type CheckStoreOptions = Omit<index.CheckStoreOptions, 'worker'>;
/** Options of `repair`. */
export type RepairOptions = Omit<index.RepairOptions, 'worker'>;

/**
 * Opens a store, and creates it if it does not exist: see `open` of `varve`.
 *
 * @example
 * import { open } from 'varve/inline';
 * self.addEventListener('push', (event) => event.waitUntil(keep(event.data.json())));
 * async function keep(message) {
 *   const db = await open('inbox', { storage: 'indexeddb' });
 *   await db.set([Date.now()], message);
 *   await db.close();
 * }
 */
export async function open<K = Key, V = unknown>(name: string, options: OpenOptions<K, V> = {}): Promise<Store<K, V>> {
  checkOptions(options, OPEN_INLINE);
  const adapter = isAdapter(options.storage) ? options.storage : undefined;
  // A service worker may not import later on: so this module contains everything.
  loaders.transactions = async () => transactions;
  loaders.begin = async () => begin;
  loaders.changes = async () => changes;
  loaders.live = async () => live;
  loaders.cache = async () => cache;
  loaders.portable = async () => portable;
  loaders.encryption = async () => encryption;
  loadBlobs.now = async () => blobs;
  return openStore<K, V>(name, options, () => inlineEngine(adapter), {});
}

/** Fetches and compiles the engine, for a page that will open a store later: see `preload` of `varve`. */
export function preload(options: index.PreloadOptions = {}): void {
  checkOptions(options, PRELOAD);
  loadEngine(options.wasm).catch(() => undefined);
}

/** The names of this origin's stores, sorted. */
export async function listStores(options: ListStoresOptions = {}): Promise<string[]> {
  return index.listStores(inline(options, LIST));
}

/** Deletes a store with all its data; resolves with true if it existed: see `deleteStore` of `varve`. */
export async function deleteStore(name: string, options: DeleteStoreOptions = {}): Promise<boolean> {
  return index.deleteStore(name, inline(options, DELETE));
}

/** Checks a store that is not open: see `check` of `varve`. It runs in slices between the other work of this thread. */
export async function check(name: string, options: CheckStoreOptions = {}): Promise<CheckReport> {
  return index.check(name, inline(options, CHECK_CLOSED));
}

/**
 * Salvages the readable data of a damaged store into a new store, and reports what is lost: see `repair` of `varve`. It runs in
 * slices between the other work of this thread.
 */
export async function repair(name: string, options: RepairOptions = {}): Promise<RepairReport> {
  return index.repair(name, inline(options, REPAIR));
}

/** The options, with a `worker` function that runs the engine in this realm, with the adapter, behind the interface of a worker. */
function inline<O extends { storage?: StorageKind | StorageAdapter | undefined }>(
  options: O,
  known: Known<O>,
): O & { storage: never; worker: () => Worker } {
  checkOptions(options, known);
  loaders.requests = async () => requests;
  loaders.encryption = async () => encryption;
  const adapter = isAdapter(options.storage) ? options.storage : undefined;
  const storage = adapter === undefined ? options.storage : undefined;
  return { ...options, storage: storage as never, worker: () => inlineEngine(adapter) as unknown as Worker };
}

export { deriveKey } from './encryption/user-key.ts';
// The functions and types of this module replace those of the same name.
export * from './index.ts';
