/**
 * Stores that adapters open by name.
 *
 * Invariant: a store is opened at its first use, once for all that use it; if that fails, the next use tries again.
 */

import { open } from '../index.ts';
import type { AnyStore, StoreOrName } from './any-store.ts';

/** Stores that are open or being opened, by their names. */
const stores = new Map<string, Promise<AnyStore>>();

/** The store of a name, or the given store itself. */
export async function storeOf(store: StoreOrName): Promise<AnyStore> {
  if (typeof store !== 'string') return store;
  const known = stores.get(store);
  if (known !== undefined) return known;
  const opening = open(store);
  stores.set(store, opening);
  opening.catch(() => stores.delete(store));
  return opening;
}
