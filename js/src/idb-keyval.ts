/**
 * The package `varve/idb-keyval`: the functions of idb-keyval 6, over stores of `varve`. Only the import changes.
 *
 * Invariants: Keys have the types, the order and the errors of IndexedDB. A value is stored as `[value]`, because a store refuses
 * undefined. Behind all keys are the marks of `migrate`.
 */

// biome-ignore-all lint/suspicious/noExplicitAny: these are the types of idb-keyval.

import type { AnyStore, StoreOrName } from './adapters/any-store.ts';
import { ALL, END, fromKey, type IdbKey, toKey } from './adapters/idb-keys.ts';
import { type MigrateOptions as CommonMigrateOptions, type MigrationReport, moveOnce } from './adapters/migration.ts';
import { storeOf } from './adapters/named-stores.ts';
import { repeated } from './adapters/repeated.ts';
import { hasCode } from './errors.ts';
import type { View } from './store/view.ts';
import type { Key, Progress } from './types.ts';

export type { AnyStore, IdbKey, MigrationReport, Progress, StoreOrName };

/** A store for the last argument of every function: see `createStore`. */
export type UseStore = () => Promise<View<Key, [unknown]>>;

/** A store with its last update. Later calls wait for that: after a conflict it reads again, and must not find what they wrote. */
type InOrder = UseStore & { update?: Promise<unknown> };

/**
 * A store for the last argument of every function: the keys under `storeName` in the Varve store `dbName`, which is opened at the first
 * use. Unlike a database of idb-keyval, one Varve store can have any number of them. Instead of a name, it takes a store of your own,
 * a view, or the promise of one.
 *
 * @example
 * const settings = createStore('app', 'settings');
 * await set('theme', 'dark', settings);
 */
export function createStore(dbName: StoreOrName, storeName: string): UseStore {
  const use: InOrder = async () => {
    await use.update;
    const store = await storeOf(dbName);
    return store.at<Key, [unknown]>([storeName]);
  };
  return use;
}

/** The names that idb-keyval gives its default store. */
const DEFAULT = ['keyval-store', 'keyval'] as const;

const defaultStore = createStore(...DEFAULT);

/** Options of `migrate`. */
export interface MigrateOptions extends CommonMigrateOptions {
  /** The names that idb-keyval's `createStore` got. Default: those of its default store. */
  dbName?: string | undefined;
  storeName?: string | undefined;
}

/**
 * Copies what idb-keyval has stored, once. Call it before the other functions. A key that is there already keeps its value. The database
 * of idb-keyval stays until you delete it. If the copying is cut off, the next call begins anew; nothing is lost. Tabs may call it at the
 * same time: no call resolves before everything is there. By default, a database is copied into the store of the same names. Rejects
 * with a `DataCloneError` if a value cannot be stored, and with `VARVE_INVALID_KEY` if a key is too long: the message names the key. Delete
 * that entry with idb-keyval, and call it again.
 *
 * @example
 * const { copied, state } = await migrate(); // idb-keyval's default store
 * await migrate({ dbName: 'app', storeName: 'settings', signal, onProgress: ({ done, total }) => show(done / total) }, settings);
 * indexedDB.deleteDatabase('keyval-store');
 */
export async function migrate(options: MigrateOptions = {}, customStore?: UseStore): Promise<MigrationReport> {
  const { dbName = DEFAULT[0], storeName = DEFAULT[1] } = options;
  const move = {
    database: dbName,
    stores: { [storeName]: (key: IdbKey, value: unknown): [Key, [unknown]] => [toKey(key), [value]] },
    view: await (customStore ?? createStore(dbName, storeName))(),
    mark: [[END, dbName, storeName], [true]] as [Key, [unknown]],
  };
  return cloning(moveOnce(move, options));
}

/** The value of a key, or undefined if the key is absent. Rejects with a `DataError` if the key is no key of IndexedDB, as all functions do. */
export async function get<T = any>(key: IdbKey, customStore: UseStore = defaultStore): Promise<T | undefined> {
  const kept = await repeated(async () => (await customStore()).get(toKey(key)));
  return kept?.[0] as T | undefined;
}

/** Sets a value. Rejects with a `DataCloneError` if the value cannot be stored. */
export async function set(key: IdbKey, value: any, customStore: UseStore = defaultStore): Promise<void> {
  const view = await customStore();
  await cloning(view.set(toKey(key), [value]));
}

/** Sets several values, all or none. */
export async function setMany(entries: [IdbKey, any][], customStore: UseStore = defaultStore): Promise<void> {
  const view = await customStore();
  await cloning(view.setMany(entries.map(([key, value]) => [toKey(key), [value]] as const)));
}

/** The values of several keys, in their order: undefined for an absent key. */
export async function getMany<T = any>(
  keys: IdbKey[],
  customStore: UseStore = defaultStore,
): Promise<(T | undefined)[]> {
  const found = await repeated(async () => (await customStore()).getMany(keys.map((key) => toKey(key))));
  return found.map((kept) => kept?.[0] as T | undefined);
}

/**
 * Replaces a value by what `updater` returns for it, as one step. If another tab writes the key meanwhile, `updater` is called again. If
 * it throws, nothing is written, and the call rejects with its error.
 */
export async function update<T = any>(
  key: IdbKey,
  updater: (oldValue: T | undefined) => T,
  customStore: UseStore = defaultStore,
): Promise<void> {
  const updating = customStore().then((view) => view.update(toKey(key), (old) => [updater(old?.[0] as T | undefined)]));
  (customStore as InOrder).update = updating.catch(() => undefined);
  await cloning(updating);
}

/** Deletes a key, whether it is there or not. */
export async function del(key: IdbKey, customStore: UseStore = defaultStore): Promise<void> {
  await (await customStore()).delete(toKey(key));
}

/** Deletes several keys, all or none. */
export async function delMany(keys: IdbKey[], customStore: UseStore = defaultStore): Promise<void> {
  const batch = (await customStore()).batch();
  for (const key of keys) batch.delete(toKey(key));
  await batch.commit();
}

/** Deletes everything in the store. */
export async function clear(customStore: UseStore = defaultStore): Promise<void> {
  await (await customStore()).deleteRange(ALL);
}

/** All keys, in the order of IndexedDB. */
export function keys<KeyType extends IdbKey>(customStore: UseStore = defaultStore): Promise<KeyType[]> {
  return repeated(async () => {
    const found = await (await customStore()).keys(ALL).toArray();
    return found.map((key) => fromKey(key) as KeyType);
  });
}

/** All values, in the order of their keys. */
export function values<T = any>(customStore: UseStore = defaultStore): Promise<T[]> {
  return repeated(async () => {
    const found = await (await customStore()).values(ALL).toArray();
    return found.map(([value]) => value as T);
  });
}

/** All entries, in the order of their keys. */
export function entries<KeyType extends IdbKey, ValueType = any>(
  customStore: UseStore = defaultStore,
): Promise<[KeyType, ValueType][]> {
  return repeated(async () => {
    const found = await (await customStore()).entries(ALL).toArray();
    return found.map(([key, [value]]) => [fromKey(key) as KeyType, value as ValueType]);
  });
}

/** Turns the refusal of a value into IndexedDB's error. */
async function cloning<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw hasCode(error, 'VARVE_INVALID_VALUE') ? new DOMException(error.message, 'DataCloneError') : error;
  }
}
