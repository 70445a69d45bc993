/**
 * The package `varve/automerge`: a storage adapter for automerge-repo 2, over stores of `varve`. It imports nothing of Automerge.
 *
 * Invariants: A chunk of automerge-repo is an entry: its key is the array of strings, its value the bytes. Behind all chunks are the marks
 * of `migrate`.
 */

import type { AnyStore, StoreOrName } from './adapters/any-store.ts';
import type { IdbKey } from './adapters/idb-keys.ts';
import { type MigrateOptions as CommonMigrateOptions, type MigrationReport, moveOnce } from './adapters/migration.ts';
import { storeOf } from './adapters/named-stores.ts';
import { repeated } from './adapters/repeated.ts';
import { bytes } from './index.ts';
import type { View } from './store/view.ts';
import type { Entry, Key, Progress } from './types.ts';

export type { AnyStore, MigrationReport, Progress, StoreOrName };

/** A key of automerge-repo, such as `[documentId, 'snapshot', hash]`. */
export type StorageKey = string[];

/** A part of a document, as automerge-repo reads it. */
export interface Chunk {
  key: StorageKey;
  data: Uint8Array | undefined;
}

type Chunks = View<Key, Uint8Array>;

/** The name of the store for adapters that name none. */
const STORE = 'automerge';

/** Behind all chunks: strings sort before numbers. */
const END: Key = [0];

const chunksOf = async (store: StoreOrName): Promise<Chunks> => (await storeOf(store)).at([], { values: bytes });

/** In a view, a key of one element is read as that element. */
const toStorageKey = (key: Key): StorageKey => (Array.isArray(key) ? [...key] : [key as string]);

/**
 * A storage for the `Repo` of automerge-repo: its `StorageAdapterInterface`. `store` is a store, a view of one, or the promise of one; or a
 * name, `'automerge'` by default. If the store cannot be opened, every call rejects with that error. The adapter does not close it.
 *
 * @example
 * const repo = new Repo({ storage: new VarveStorageAdapter() });
 */
export class VarveStorageAdapter {
  /** Called by each call: a named store may have to be opened again. */
  readonly #chunks: () => Promise<Chunks>;

  constructor(store: StoreOrName = STORE) {
    this.#chunks = () => chunksOf(store);
    // The store is opened now. Every call reports the error.
    this.#chunks().catch(() => undefined);
  }

  /** The bytes of a key, or undefined. They have a buffer of their own. */
  async load(key: StorageKey): Promise<Uint8Array | undefined> {
    const chunks = await this.#chunks();
    const data = await repeated(() => chunks.get(key));
    return data?.slice();
  }

  /** Writes with the durability of the store. */
  async save(key: StorageKey, data: Uint8Array): Promise<void> {
    await (await this.#chunks()).set(key, data);
  }

  /** Deletes a key, whether it is there or not. */
  async remove(key: StorageKey): Promise<void> {
    await (await this.#chunks()).delete(key);
  }

  /**
   * All chunks whose keys begin with the elements of `keyPrefix`, all at the same read point. They are in the order in which they were
   * saved. So a change comes after those that it depends on, and Automerge need not put it aside.
   */
  async loadRange(keyPrefix: StorageKey): Promise<Chunk[]> {
    const chunks = await this.#chunks();
    return repeated(async () => {
      const snapshot = chunks.snapshot();
      try {
        const keys = await snapshot.keys({ prefix: keyPrefix, lt: END }).toArray();
        const entries = await Promise.all(
          keys.map(async (key) => [key, (await snapshot.getEntry(key)) as Entry<Uint8Array>] as const),
        );
        return entries
          .sort(([, a], [, b]) => a.sequence - b.sequence)
          .map(([key, { value }]) => ({ key: toStorageKey(key), data: value.slice() }));
      } finally {
        await snapshot.close();
      }
    });
  }

  /** Deletes all chunks whose keys begin with the elements of `keyPrefix`, at the cost of one write. */
  async removeRange(keyPrefix: StorageKey): Promise<void> {
    await (await this.#chunks()).deleteRange({ prefix: keyPrefix, lt: END });
  }
}

/** Options of `migrate`. */
export interface MigrateOptions extends CommonMigrateOptions {
  /** The names that `IndexedDBStorageAdapter` got. Default: 'automerge' and 'documents', as there. */
  database?: string | undefined;
  store?: string | undefined;
}

/**
 * Copies what `IndexedDBStorageAdapter` of automerge-repo has stored, once. Call it before the `Repo` is made. A key that is there already
 * keeps its value. The database stays until you delete it. If the copying is cut off, the next call begins anew; nothing is lost. Tabs may
 * call it at the same time: no call resolves before everything is there.
 *
 * @example
 * await migrate({ onProgress: ({ done, total }) => show(done / total) });
 * indexedDB.deleteDatabase('automerge');
 * const repo = new Repo({ storage: new VarveStorageAdapter() });
 */
export async function migrate(options: MigrateOptions = {}, target: StoreOrName = STORE): Promise<MigrationReport> {
  const { database = 'automerge', store = 'documents' } = options;
  const toEntry = (key: IdbKey, value: unknown): [Key, Uint8Array] => [
    key as StorageKey,
    (value as { readonly binary: Uint8Array }).binary,
  ];
  const mark: [Key, Uint8Array] = [[0, database, store], new Uint8Array()];
  return moveOnce({ database, stores: { [store]: toEntry }, view: await chunksOf(target), mark }, options);
}
