/**
 * Stores that are opened by name.
 *
 * Invariant: a store is opened at its first use, once for all that use it; if that fails, or if the store is not open any more, the next
 * use opens it again.
 */

import { type OpenOptions, open } from '../index.ts';
import type { Store } from '../store/store.ts';
import type { Key } from '../types.ts';
import type { AnyStore, StoreOrName } from './any-store.ts';

interface Opening {
  readonly promise: Promise<Store<Key, unknown>>;
  /** The store, once it is open. */
  store?: Store<Key, unknown>;
}

/** Stores that are open or being opened, by their names. */
export class NamedStores {
  readonly #openings = new Map<string, Opening>();

  /** Resolves with the store of a name. The options are those of its opening, if this call opens it. */
  store(name: string, options?: OpenOptions<Key, unknown>): Promise<Store<Key, unknown>> {
    const current = this.opening(name);
    if (current !== undefined) return current.promise;
    const opening: Opening = { promise: open(name, options) };
    this.#openings.set(name, opening);
    opening.promise.then(
      (store) => {
        opening.store = store;
      },
      () => this.#openings.delete(name),
    );
    return opening.promise;
  }

  /** The opening of a name, unless the store is not open any more. */
  opening(name: string): Opening | undefined {
    const opening = this.#openings.get(name);
    try {
      opening?.store?.client.ensureOpen();
      return opening;
    } catch {
      // It was closed or deleted, or it has failed.
      return undefined;
    }
  }
}

/** The stores of adapters. Those of `useStore` are others: they may have options, such as codecs. */
const stores = new NamedStores();

/** The store of a name, or the given store itself. */
export async function storeOf(store: StoreOrName): Promise<AnyStore> {
  return typeof store === 'string' ? stores.store(store) : store;
}
