/**
 * The package `varve/here`: the API of `varve`, with the engine in the realm that imports it.
 *
 * For service workers, which may neither start workers nor import code later on, and for pages that want no worker. Where there are
 * no workers, `varve` loads the same code by itself.
 *
 * Invariant: the same stores, files and semantics. OPFS needs a dedicated worker: elsewhere new stores go to IndexedDB.
 */

import * as cache from './changes/cache.ts';
import * as changes from './changes/changes.ts';
import * as live from './changes/live.ts';
import { deleteStore as deleteIn, listStores as listIn } from './index.ts';
import { checkOptions } from './options.ts';
import * as portable from './portable/portable.ts';
import * as membership from './share/membership.ts';
import { isAdapter, type StorageAdapter } from './storage/adapter.ts';
import { loaders } from './store/loaders.ts';
import { openStore } from './store/open.ts';
import { OPEN } from './store/options.ts';
import type { Store } from './store/store.ts';
import * as transactions from './store/transaction.ts';
import type { StoreOptions } from './store/upgrade.ts';
import type { Key, OpenOptions, WaitOptions } from './types.ts';
import { engineHere } from './worker/here.ts';

const { worker: _, ...HERE } = OPEN;

/** Selects the storage. */
export interface HereOptions extends WaitOptions {
  /** A storage adapter. Default: the storage of the browser. */
  storage?: StorageAdapter | undefined;
}

/**
 * Opens a store, and creates it if it does not exist: see `open` of `varve`.
 *
 * @example
 * import { open } from 'varve/here';
 * self.addEventListener('push', (event) => event.waitUntil(keep(event.data.json())));
 * async function keep(message) {
 *   const db = await open('inbox', { storage: 'indexeddb' });
 *   await db.set([Date.now()], message);
 *   await db.close();
 * }
 */
export async function open<K = Key, V = unknown>(
  name: string,
  options: Omit<StoreOptions<K, V>, 'worker'> = {},
): Promise<Store<K, V>> {
  checkOptions(options, HERE);
  const adapter = isAdapter(options.storage) ? options.storage : undefined;
  // A service worker may not import later on: so this module contains everything.
  loaders.transactions = async () => transactions;
  loaders.changes = async () => changes;
  loaders.live = async () => live;
  loaders.cache = async () => cache;
  loaders.portable = async () => portable;
  return openStore<K, V>(
    name,
    options,
    () => engineHere(adapter),
    async () => membership,
  );
}

/** The names of this origin's stores, sorted. */
export function listStores(options: HereOptions = {}): Promise<string[]> {
  return listIn(here(options));
}

/** Deletes a store with all its data; resolves with true if it existed: see `deleteStore` of `varve`. */
export function deleteStore(name: string, options: HereOptions & { wait?: number | undefined } = {}): Promise<boolean> {
  return deleteIn(name, here(options));
}

/** The options, with a `worker` function that runs the engine in this realm, with the adapter, behind the interface of a worker. */
function here<O extends { storage?: OpenOptions['storage'] }>(
  options: O,
): O & { storage: never; worker: () => Worker } {
  const adapter = isAdapter(options.storage) ? options.storage : undefined;
  const storage = adapter === undefined ? options.storage : undefined;
  return { ...options, storage: storage as never, worker: () => engineHere(adapter) as unknown as Worker };
}

export { bytes, json, structured, utf8 } from './codec/values.ts';
export { type Conflict, VarveError, type VarveErrorCode } from './errors.ts';
