/**
 * Stores that adapters open by name.
 *
 * Invariant: a store is opened at its first use, once for all that use it; if that fails, or if the store is not open any more, the next
 * use opens it again.
 */

import { open } from '../index.ts';
import type { Store } from '../store/store.ts';
import type { Key } from '../types.ts';
import type { AnyStore, StoreOrName } from './any-store.ts';

interface Opening {
  readonly promise: Promise<Store<Key, unknown>>;
  /** The store, once it is open. */
  store?: Store<Key, unknown>;
}

/** Stores that are open or being opened, by their names. */
const openings = new Map<string, Opening>();

/** The store of a name, or the given store itself. */
export async function storeOf(store: StoreOrName): Promise<AnyStore> {
  if (typeof store !== 'string') return store;
  let opening = openings.get(store);
  try {
    opening?.store?.client.ensureOpen();
  } catch {
    // It was closed or deleted, or it has failed.
    opening = undefined;
  }
  opening ??= openNamed(store);
  return opening.promise;
}

function openNamed(name: string): Opening {
  const opening: Opening = { promise: open(name) };
  openings.set(name, opening);
  opening.promise.then(
    (store) => {
      opening.store = store;
    },
    () => openings.delete(name),
  );
  return opening;
}
