/**
 * Varve as a page uses it (`varve`): promises, the engine in a worker of its own. Calls of one turn travel in one frame.
 */

import { deleteStore, open, type Store } from 'varve';
import { open as openInline } from 'varve/inline';
import type { AsyncSession, Engine } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { waveOfCalls } from './runs.ts';
import { storeFiles } from './varve-files.ts';

export function varveSession(store: Store<Key, Uint8Array>): AsyncSession {
  const points: Pick<AsyncSession, 'get' | 'set' | 'delete'> = {
    get: (key) => store.get(key),
    set: (key, value) => store.set(key, value),
    delete: (key) => store.delete(key),
  };
  return {
    kind: 'async',
    ...points,
    batch: ({ keys, values }) => {
      const batch = store.batch();
      for (let i = 0; i < keys.length; i++) batch.set(keys[i] as Key, values[i] as Uint8Array);
      return batch.commit();
    },
    range: async (from, limit, sink) => {
      for await (const [key, value] of store.entries({ gte: from, limit })) sink.take(key, value);
    },
    deleteRange: (from, to) => store.deleteRange({ gte: from, lt: to }),
    transact: ({ keys, values }) =>
      store.transaction(async (tx) => {
        const found = await Promise.all(keys.map((key) => tx.get(key)));
        for (const [i, key] of keys.entries()) tx.set(key, values[i] as Uint8Array);
        return found;
      }),
    wave: waveOfCalls(points),
    settle: async (where, entries) => {
      if (where === 'tables') await store.compact();
      return where !== 'memtable' || (await store.stats()).memtable.entries >= entries;
    },
    report: () => store.stats(),
    close: () => store.close(),
  };
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
    varveSession(await open<Key, Uint8Array>(name, { durability, memoryBytes, storage })),
  disk: storeFiles,
};

export const varveIndexedDb: Engine = {
  ...shared,
  name: 'varve-indexeddb',
  about: 'The same, its files in IndexedDB: one transaction for all that is in flight.',
  open: async (name, { durability, memoryBytes }) =>
    varveSession(await open<Key, Uint8Array>(name, { durability, memoryBytes, storage: 'indexeddb' })),
};

export const varveHereIndexedDb: Engine = {
  ...shared,
  name: 'varve-here-indexeddb',
  about: 'varve/inline: the engine beside its caller, without a worker, its files in IndexedDB.',
  accesses: ['worker', 'page', 'inflight'],
  open: async (name, { durability, memoryBytes }) =>
    varveSession(await openInline<Key, Uint8Array>(name, { durability, memoryBytes, storage: 'indexeddb' })),
};
