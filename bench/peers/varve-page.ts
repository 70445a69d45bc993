/** Varve from a page (`varve`), with the engine in its worker; and over IndexedDB, also with the engine beside its caller. */

import { deleteStore, open, type Store } from 'varve';
import { open as openInline } from 'varve/inline';
import type { AsyncSession, Engine, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { engineOf, openOptions } from './library.ts';
import { storeFiles } from './opfs.ts';
import { waveOfCalls } from './runs.ts';

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

const pageOptions = (options: SessionOptions) => ({ ...openOptions(options), cache: options.cache === true });

export const varvePage = engineOf({
  name: 'varve',
  about: 'varve from the page: the engine in its worker; calls of one turn travel in one frame.',
  role: 'varve',
  accesses: ['page', 'inflight'],
  durabilities: ['memory', 'relaxed', 'strict'],
  open: async (name, options) => varveSession(await open<Key, Uint8Array>(name, pageOptions(options))),
  disk: storeFiles,
  remove: async (name) => void (await deleteStore(name)),
});

const overIndexedDb = (name: string, about: string, opens: typeof open): Engine => ({
  ...varvePage,
  name,
  about,
  open: async (name, options) => {
    const session = varveSession(await opens<Key, Uint8Array>(name, pageOptions({ ...options, storage: 'indexeddb' })));
    // The memtable of a small store takes 1 MiB there. The other entries of suites "in memory" lie in the cache.
    return { ...session, settle: async (where, entries) => where === 'memtable' || session.settle(where, entries) };
  },
  // The files of IndexedDB cannot be seen.
  disk: undefined,
});

export const varveIndexedDb = overIndexedDb(
  'varve-indexeddb',
  'The same, its files in IndexedDB: one transaction for all that is in flight.',
  open,
);

export const varveHereIndexedDb: Engine = {
  ...overIndexedDb(
    'varve-inline-indexeddb',
    'varve/inline: the engine beside its caller, without a worker, its files in IndexedDB.',
    openInline,
  ),
  accesses: ['worker', 'page', 'inflight'],
};
