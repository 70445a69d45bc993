/**
 * The package `varve/here`: the API of `varve`, with the engine in the realm of whoever imports it.
 *
 * For service workers, which may neither start workers nor import code later on, and for pages that want no worker. `varve` itself
 * loads the same code by itself where there are no workers.
 *
 * Invariant: the same stores, files and semantics. OPFS needs a dedicated worker: elsewhere new stores go to IndexedDB.
 */

import { isAdapter, type StorageAdapter } from './storage/adapter.ts';
import { deleteNamed, listNames, openStore, type Spawn } from './store/open.ts';
import type { Store } from './store/store.ts';
import type { StoreOptions } from './store/upgrade.ts';
import type { Key, OpenOptions, WaitOptions } from './types.ts';
import { engineHere } from './worker/here.ts';

/** Which stores are meant. */
export interface HereOptions extends WaitOptions {
  /** An adapter, instead of what the browser has. */
  storage?: StorageAdapter | undefined;
}

/**
 * Opens a store, making it where there is none: see `open` of `varve`.
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
export function open<K = Key, V = unknown>(
  name: string,
  options: Omit<StoreOptions<K, V>, 'worker'> = {},
): Promise<Store<K, V>> {
  return openStore(name, options, spawnHere(options));
}

/** The names of this origin's stores, sorted. */
export function listStores(options: HereOptions = {}): Promise<string[]> {
  return listNames(options, spawnHere(options));
}

/** Deletes a store and all it holds; resolves with whether there was one: see `deleteStore` of `varve`. */
export function deleteStore(name: string, options: HereOptions & { wait?: number | undefined } = {}): Promise<boolean> {
  return deleteNamed(name, options, spawnHere(options));
}

function spawnHere({ storage }: Pick<OpenOptions, 'storage'>): Spawn {
  const adapter = isAdapter(storage) ? storage : undefined;
  return () => engineHere(adapter);
}

export { bytes, json, structured, utf8 } from './codec/values.ts';
export { type Conflict, VarveError, type VarveErrorCode } from './errors.ts';
