/**
 * Varve as a page uses it (`varve`): promises, the engine in a worker of its own. Calls of one turn travel in one frame.
 */

import { deleteStore, open, type Store } from 'varve';
import { open as openInline } from 'varve/inline';
import type { AsyncSession, BatchEntries, Engine, Place, PointCall, Sink, StoreNumbers } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { storeFiles } from './varve-files.ts';

export class VarveSession implements AsyncSession {
  readonly kind = 'async';
  readonly #store: Store<Key, Uint8Array>;

  constructor(store: Store<Key, Uint8Array>) {
    this.#store = store;
  }

  set(key: Key, value: Uint8Array): Promise<unknown> {
    return this.#store.set(key, value);
  }

  get(key: Key): Promise<Uint8Array | undefined> {
    return this.#store.get(key);
  }

  delete(key: Key): Promise<unknown> {
    return this.#store.delete(key);
  }

  batch({ keys, values }: BatchEntries): Promise<unknown> {
    const batch = this.#store.batch();
    for (let i = 0; i < keys.length; i++) batch.set(keys[i] as Key, values[i] as Uint8Array);
    return batch.commit();
  }

  async range(from: Key | undefined, limit: number, sink: Sink): Promise<void> {
    for await (const [key, value] of this.#store.entries({ gte: from, limit })) sink.take(key, value);
  }

  deleteRange(from: Key, to: Key): Promise<unknown> {
    return this.#store.deleteRange({ gte: from, lt: to });
  }

  transact({ keys, values }: BatchEntries): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#store.transaction(async (tx) => {
      const found = await Promise.all(keys.map((key) => tx.get(key)));
      keys.forEach((key, i) => {
        tx.set(key, values[i] as Uint8Array);
      });
      return found;
    });
  }

  wave(calls: readonly PointCall[]): Promise<(Uint8Array | undefined)[]> {
    const store = this.#store;
    return Promise.all(
      calls.map(({ key, value }) => {
        if (value === undefined) return store.get(key);
        return (value === null ? store.delete(key) : store.set(key, value)).then(nothing);
      }),
    );
  }

  async settle(where: Place, entries: number): Promise<boolean> {
    if (where === 'tables') await this.#store.compact();
    return where !== 'memtable' || (await this.#store.stats()).memtable.entries >= entries;
  }

  async report(): Promise<StoreNumbers> {
    return this.#store.stats();
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

/** What a write of a wave delivers. */
function nothing(): undefined {
  return undefined;
}

const shared: Omit<Engine, 'name' | 'about' | 'open'> = {
  role: 'varve',
  accesses: ['page', 'inflight'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'tuple', 'transaction'],
  durabilities: ['memory', 'relaxed', 'strict'],
  async remove(name) {
    await deleteStore(name);
  },
};

export const varvePage: Engine = {
  ...shared,
  name: 'varve',
  about: 'varve from the page: the engine in its worker; calls of one turn travel in one frame.',
  open: async (name, { durability, memoryBytes, storage }) =>
    new VarveSession(await open<Key, Uint8Array>(name, { durability, memoryBytes, storage })),
  disk: storeFiles,
};

export const varveIndexedDb: Engine = {
  ...shared,
  name: 'varve-indexeddb',
  about: 'The same, its files in IndexedDB: one transaction for all that is in flight.',
  open: async (name, { durability, memoryBytes }) =>
    new VarveSession(await open<Key, Uint8Array>(name, { durability, memoryBytes, storage: 'indexeddb' })),
};

export const varveHereIndexedDb: Engine = {
  ...shared,
  name: 'varve-here-indexeddb',
  about: 'varve/inline: the engine beside its caller, without a worker, its files in IndexedDB.',
  accesses: ['worker', 'page', 'inflight'],
  open: async (name, { durability, memoryBytes }) =>
    new VarveSession(await openInline<Key, Uint8Array>(name, { durability, memoryBytes, storage: 'indexeddb' })),
};
