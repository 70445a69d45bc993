/**
 * Opens stores in IndexedDB with a script that is loaded at the first such store. Most stores are in OPFS, and their pages never load
 * it: it is a quarter of what the engine worker would be.
 *
 * Invariant: the script has its own copies of the modules that it shares with the worker. So its errors are known by their names: a
 * `SlotError` is known everywhere, the others are made anew here.
 */

import { hasCode, VarveError } from '../../errors.ts';
import type { IndexedDbStores, OpenIndexedDb } from '../open-device.ts';
import { nameOf } from '../opfs-directory.ts';
import { Unavailable } from '../unavailable.ts';

/** Where the script puts its function: on the global object, under a name that the whole realm shares. */
export const place = scope();

let loading: Promise<OpenIndexedDb> | undefined;

/** Stores in IndexedDB, for the engine worker. */
export const indexedDbScript: IndexedDbStores = {
  load,
  async open(name) {
    const open = await load();
    try {
      return await open(name);
    } catch (error) {
      if (nameOf(error) === 'IndexedDbUnavailable') throw new Unavailable((error as Error).message, { cause: error });
      throw hasCode(error, 'VARVE_STORAGE_FULL', 'VARVE_VERSION') ? VarveError.fromWire(error) : error;
    }
  },
};

/** Loads the script, once. */
function load(): Promise<OpenIndexedDb> {
  loading ??= run().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function run(): Promise<OpenIndexedDb> {
  const { href } = new URL('./indexeddb-worker.js', import.meta.url);
  try {
    // Bundlers copy the file that the URL names, and leave the import alone.
    await import(/* webpackIgnore: true */ /* @vite-ignore */ href);
    if (place.openIndexedDb === undefined) throw new Error('it is another script');
    return place.openIndexedDb;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new VarveError(
      'VARVE_UNSUPPORTED',
      `The script for stores in IndexedDB could not be loaded from ${href} (${why}). Serve the file there.`,
      { cause },
    );
  }
}

function scope(): { openIndexedDb?: OpenIndexedDb } {
  const realm = globalThis as { [key: symbol]: { openIndexedDb?: OpenIndexedDb } | undefined };
  const key = Symbol.for('varve.indexeddb');
  realm[key] ??= {};
  return realm[key];
}
