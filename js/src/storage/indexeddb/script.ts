/**
 * Opens stores in IndexedDB with a script that is loaded at the first such store. Most stores are in OPFS, and their pages never load
 * it: it is a quarter of what the engine worker would be.
 */

import { laterScript, ownError, placeOf } from '../later-script.ts';
import type { IndexedDbStores, OpenIndexedDb } from '../open-device.ts';
import { nameOf } from '../opfs-directory.ts';
import { Unavailable } from '../unavailable.ts';

/** Where the script puts its function. */
export const place = placeOf<OpenIndexedDb>('varve.indexeddb');

const load = laterScript(place, 'stores in IndexedDB', () => new URL('./indexeddb-worker.js', import.meta.url));

/** Stores in IndexedDB, for the engine worker. */
export const indexedDbScript: IndexedDbStores = {
  load,
  async open(name) {
    const open = await load();
    try {
      return await open(name);
    } catch (error) {
      if (nameOf(error) === 'IndexedDbUnavailable') {
        const { message, cause } = error as Error;
        throw new Unavailable(message, { cause });
      }
      throw ownError(error);
    }
  },
};
