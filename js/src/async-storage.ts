/**
 * The package `varve/async-storage`: a part of a store behind `getItem`, `setItem` and `removeItem`, for libraries that keep their state
 * in such a storage.
 *
 * Invariants: A storage is there at once; its calls wait for the store, and take effect in the order of the calls. No method uses
 * `this`, because some libraries take the methods out of the object. It imports nothing: a page loads one small file.
 */

import type { AnyStore } from './adapters/any-store.ts';
import type { VarveError } from './errors.ts';
import type { View } from './store/view.ts';
import type { Key, Receipt } from './types.ts';

export type { AnyStore };

/** Options of a storage. */
export interface AsyncStorageOptions {
  /** The first elements of the keys of all items: see `db.at(prefix)`. Default: the items are in the store itself. */
  readonly prefix?: readonly Key[] | undefined;
}

/** A storage, as TanStack Query, Zustand, Jotai, redux-persist and apollo3-cache-persist take it. */
export interface AsyncStorage<V> {
  /** The value of a key. If it is absent: null, or the second argument, which Jotai passes. */
  getItem(key: string): Promise<V | null>;
  getItem(key: string, absent: V): Promise<V>;
  /** Writes a value, with the durability of the store. */
  setItem(key: string, value: V): Promise<void>;
  /** Deletes a key, whether it is there or not. */
  removeItem(key: string): Promise<void>;
  /** All keys with their values, in the order of the keys. */
  entries(): Promise<[key: string, value: V][]>;
  /**
   * Calls `callback` with the value of a key after each change that came from elsewhere: from another tab, or from this one but not
   * through this storage. A deletion passes what `getItem` returns for an absent key. A change that this storage has overwritten
   * meanwhile is left out. Returns a function that ends the subscription; it also ends when the store is closed.
   */
  subscribe(key: string, callback: (value: V | null) => void): () => void;
  subscribe(key: string, callback: (value: V) => void, absent: V): () => void;
}

interface Subscription {
  readonly key: string;
  /** The last write of the key by this storage. */
  own: Promise<Receipt> | undefined;
}

/**
 * A storage in a store, or in the view of `prefix`. It takes the promise of a store, too: so a page is rendered while the store opens.
 * If the store cannot be opened, every call rejects with that error. Values are strings; for libraries that keep other values, name
 * their type.
 *
 * @example
 * const db = open('app');
 * const persister = experimental_createQueryPersister({ storage: asyncStorage(db, { prefix: ['query'] }) }); // TanStack Query
 * const useTodos = create(persist(todos, { name: 'todos', storage: asyncStorage<StorageValue<Todos>>(db) })); // Zustand
 * const theme = atomWithStorage('theme', 'light', asyncStorage<string>(db, { prefix: ['settings'] })); // Jotai
 */
export function asyncStorage<V = string>(
  store: AnyStore | PromiseLike<AnyStore>,
  { prefix = [] }: AsyncStorageOptions = {},
): AsyncStorage<V> {
  const opening = Promise.resolve(store).then((opened) => opened.at<string, V>(prefix));
  // Every call that has a result reports the error.
  opening.catch(() => undefined);
  const subscriptions = new Set<Subscription>();

  const write = async (key: string, run: (view: View<string, V>) => Promise<Receipt>): Promise<void> => {
    const own = opening.then(run);
    for (const subscription of subscriptions) if (subscription.key === key) subscription.own = own;
    await own;
  };

  const read = async (key: string, absent: unknown): Promise<unknown> => {
    const value = await repeated(async () => (await opening).get(key));
    return value === undefined ? absent : value;
  };

  const follow = async (
    view: View<string, V>,
    subscription: Subscription,
    callback: (value: unknown) => void,
    absent: unknown,
    signal: AbortSignal,
  ): Promise<void> => {
    const { key } = subscription;
    try {
      for await (const change of view.watch(key, { signal })) {
        if (change.sequence <= (await sequenceOfOwn(subscription))) continue;
        const value = change.type === 'gap' ? await read(key, absent) : change.type === 'set' ? change.value : absent;
        // In a separate microtask: an error that the callback throws must not end the subscription.
        queueMicrotask(() => signal.aborted || callback(value));
      }
    } catch (error) {
      if (!signal.aborted && (error as Partial<VarveError>).code !== 'VARVE_CLOSED') throw error;
    }
  };

  return {
    getItem: (key: string, ...absent: unknown[]) => read(key, absentOf(absent)) as Promise<never>,
    setItem: (key, value) => write(key, (view) => view.set(key, value)),
    removeItem: (key) => write(key, (view) => view.delete(key)),
    entries: () =>
      repeated(async () => {
        const found = await (await opening).entries({ prefix: '' }).toArray();
        return found.filter(([key]) => typeof key === 'string');
      }),
    subscribe(key: string, callback: (value: never) => void, ...absent: unknown[]) {
      const ending = new AbortController();
      const subscription: Subscription = { key, own: undefined };
      subscriptions.add(subscription);
      const call = callback as (value: unknown) => void;
      void opening.then(
        (view) => follow(view, subscription, call, absentOf(absent), ending.signal),
        () => undefined,
      );
      return () => {
        subscriptions.delete(subscription);
        ending.abort();
      };
    },
  };
}

/** The value for an absent key: the argument, also if it is undefined, or null if there is no argument. */
function absentOf(given: readonly unknown[]): unknown {
  return given.length > 0 ? given[0] : null;
}

/** The sequence of the storage's last write of the key, once it is known: 0 if there was none, or if it failed. */
async function sequenceOfOwn(subscription: Subscription): Promise<number> {
  for (;;) {
    const { own } = subscription;
    const receipt = await own?.catch(() => undefined);
    if (own === subscription.own) return receipt?.sequence ?? 0;
  }
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
