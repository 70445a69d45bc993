/**
 * The package `varve/unstorage`: a part of a store as a driver of unstorage, which Nitro and Nuxt use.
 *
 * Invariants: The items are the keys of the view that are strings. No method uses `this`, because unstorage takes the methods out of
 * the object. It imports nothing: neither unstorage nor an engine.
 */

import type { AnyStore } from './adapters/any-store.ts';
import type { VarveError } from './errors.ts';
import type { View } from './store/view.ts';
import type { Key, Lifetime } from './types.ts';

export type { AnyStore };

/** Options of the driver. */
export interface DriverOptions {
  /** A store of `varve` or `varve/inline`, a view of one, or the promise of one. The driver does not close it. */
  readonly store: AnyStore | PromiseLike<AnyStore>;
  /**
   * The first elements of the keys of all items: see `db.at(prefix)`. Default: the items are in the store itself. Keep nothing else under
   * it: `clear` deletes longer keys, too.
   */
  readonly prefix?: readonly Key[] | undefined;
}

/** A value as unstorage reads it. */
export type StorageValue = null | string | number | boolean | object;

/** Options of one call. */
export interface ItemOptions {
  /** How long the item is there, in seconds. Default: for ever. */
  readonly ttl?: number;
}

/** An item, as `setItems` takes it and `getItems` returns it. */
export interface Item<V> {
  readonly key: string;
  readonly value: V;
}

/** The driver: an unstorage `Driver` with everything but metadata. */
export interface VarveDriver {
  readonly name: 'varve';
  readonly options: DriverOptions;
  hasItem(key: string): Promise<boolean>;
  /** The value, or null if the key is absent. */
  getItem(key: string): Promise<StorageValue>;
  /** The values of several keys, all at the same read point. */
  getItems(items: readonly { readonly key: string }[]): Promise<{ key: string; value: StorageValue }[]>;
  /** The value as `setItemRaw` got it: bytes are a Uint8Array, other values structured clones. */
  getItemRaw(key: string): Promise<StorageValue>;
  setItem(key: string, value: string, options?: ItemOptions): Promise<void>;
  /** Writes several items, all or none. */
  setItems(items: readonly (Item<string> & { readonly options?: ItemOptions })[]): Promise<void>;
  setItemRaw(key: string, value: unknown, options?: ItemOptions): Promise<void>;
  removeItem(key: string): Promise<void>;
  /** The keys that begin with `base`, in order. */
  getKeys(base?: string): Promise<string[]>;
  /**
   * Deletes the items whose keys begin with `base`, at the cost of one write. With a prefix it also deletes the longer keys that begin with
   * the key of such an item, or of one that could be there: `['items', 'a', 1]` of the prefix `['items']`. None is reported to `watch`.
   */
  clear(base?: string): Promise<void>;
  /** Reports every item that is set or removed from now on, by this tab and by others. Returns a function that ends that. */
  watch(callback: (event: 'update' | 'remove', key: string) => unknown): () => void;
  /** Ends all watches. */
  dispose(): void;
}

/**
 * A driver for unstorage. Calls made before the store is open wait for it, in their order; if it cannot be opened, they reject with that
 * error. Raw values need the store's default codec.
 *
 * @example
 * const storage = createStorage({ driver: varveDriver({ store: open('app'), prefix: ['storage'] }) });
 * await storage.setItem('user:ada', { born: 1815 });
 * storage.mount('cache', varveDriver({ store: db, prefix: ['cache'] }));
 */
export function varveDriver(options: DriverOptions): VarveDriver {
  const { store, prefix = [] } = options;
  const opening = Promise.resolve(store).then((opened) => opened.at<Key, unknown>(prefix));
  // Every call that has a result reports the error.
  opening.catch(() => undefined);
  const watches = new Set<AbortController>();

  const getItem = async (key: string): Promise<StorageValue> =>
    ((await repeated(async () => (await opening).get(key))) ?? null) as StorageValue;

  const setItem = async (key: string, value: unknown, options?: ItemOptions): Promise<void> => {
    await (await opening).set(key, value, lifetimeOf(options));
  };

  const follow = async (
    view: View<Key, unknown>,
    callback: (event: 'update' | 'remove', key: string) => unknown,
    signal: AbortSignal,
  ): Promise<void> => {
    try {
      for await (const change of view.watch({ prefix: '' }, { keysOnly: true, signal })) {
        if (change.type !== 'set' && change.type !== 'delete') continue;
        const { key, type } = change;
        if (typeof key !== 'string') continue;
        // In a separate microtask: an error that the callback throws must not end the watch.
        queueMicrotask(() => signal.aborted || callback(type === 'set' ? 'update' : 'remove', key));
      }
    } catch (error) {
      if (!signal.aborted && (error as Partial<VarveError>).code !== 'VARVE_CLOSED') throw error;
    }
  };

  return {
    name: 'varve',
    options,
    hasItem: (key) => repeated(async () => (await opening).has(key)),
    getItem,
    async getItems(items) {
      const values = await repeated(async () => (await opening).getMany(items.map(({ key }) => key)));
      return items.map(({ key }, index) => ({ key, value: (values[index] ?? null) as StorageValue }));
    },
    async getItemRaw(key) {
      const value = await getItem(key);
      // A copy, as other drivers return it: callers read the whole `buffer` of the bytes, or transfer it.
      return value instanceof Uint8Array && value.length < value.buffer.byteLength ? value.slice() : value;
    },
    setItem,
    async setItems(items) {
      const batch = (await opening).batch();
      for (const { key, value, options } of items) batch.set(key, value, lifetimeOf(options));
      await batch.commit();
    },
    setItemRaw: setItem,
    async removeItem(key) {
      await (await opening).delete(key);
    },
    getKeys: (base = '') =>
      repeated(async () => {
        const keys = await (await opening).keys({ prefix: base }).toArray();
        return keys.filter((key) => typeof key === 'string');
      }),
    async clear(base = '') {
      await (await opening).deleteRange({ prefix: base });
    },
    watch(callback) {
      const ending = new AbortController();
      watches.add(ending);
      void opening.then(
        (view) => follow(view, callback, ending.signal),
        () => undefined,
      );
      return () => {
        watches.delete(ending);
        ending.abort();
      };
    },
    dispose() {
      for (const ending of watches) ending.abort();
      watches.clear();
    },
  };
}

/** The lifetime that unstorage's `ttl` gives. Other drivers take 0 for none, too. */
function lifetimeOf(options: ItemOptions | undefined): Lifetime {
  return options?.ttl ? { expiresIn: options.ttl * 1000 } : {};
}

/** Reads, and reads again whenever the read point is gone (`adapters/repeated.ts`, which would be a second file here). */
async function repeated<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if ((error as Partial<VarveError>).code !== 'VARVE_RETRY') throw error;
    return repeated(read);
  }
}
