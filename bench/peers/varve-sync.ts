/**
 * Varve inside the worker (`varve/synchronous`): every call returns at once.
 *
 * `varve-sync` groups: a set is staged, readable at once, and logged with the others at 64 KiB, at the end of the turn
 * or at the `commit()` that ends a round. `varve-sync-each` calls `commit()` after each write: one append per write.
 */

import { deleteStore, open, type SyncStore } from 'varve/synchronous';
import { turn } from '../core/clock.ts';
import type { Engine, SessionOptions, SyncSession } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { engineOf, openOptions } from './library.ts';
import { storeFiles } from './opfs.ts';

export function syncSession(store: SyncStore<Key, Uint8Array>, each = false): SyncSession {
  const session: SyncSession = {
    kind: 'sync',
    set: (key, value) => void store.set(key, value),
    get: (key) => store.get(key),
    delete: (key) => void store.delete(key),
    batch: ({ keys, values }) => {
      const batch = store.batch();
      for (let i = 0; i < keys.length; i++) batch.set(keys[i] as Key, values[i] as Uint8Array);
      batch.commit();
    },
    range: (from, limit, sink) => {
      for (const [key, value] of store.entries({ gte: from, limit })) sink.take(key, value);
    },
    deleteRange: (from, to) => void store.deleteRange({ gte: from, lt: to }),
    transact: ({ keys, values }) =>
      store.transaction((tx) => {
        const found = keys.map((key) => tx.get(key));
        for (const [i, key] of keys.entries()) tx.set(key, values[i] as Uint8Array);
        return found;
      }),
    commit: () => store.commit(),
    settle: async (where, entries) => {
      store.commit();
      if (where === 'tables') await store.compact();
      await turn();
      return where !== 'memtable' || store.stats().memtable.entries >= entries;
    },
    report: async () => store.stats(),
    close: async () => store.close(),
  };
  if (!each) return session;
  return {
    ...session,
    set: (key, value) => {
      store.set(key, value);
      store.commit();
    },
    delete: (key) => {
      store.delete(key);
      store.commit();
    },
    deleteRange: (from, to) => {
      store.deleteRange({ gte: from, lt: to });
      store.commit();
    },
  };
}

const openStore = (name: string, options: SessionOptions): Promise<SyncStore<Key, Uint8Array>> =>
  open(name, openOptions(options));

export const varveSync = engineOf({
  name: 'varve-sync',
  about: 'varve/synchronous: sets are grouped into one append every 64 KiB, at the end of a turn and at commit().',
  role: 'varve',
  accesses: ['worker'],
  durabilities: ['memory', 'relaxed', 'strict'],
  open: async (name, options) => syncSession(await openStore(name, options)),
  disk: storeFiles,
  remove: async (name) => void (await deleteStore(name)),
});

export const varveSyncEach: Engine = {
  ...varveSync,
  name: 'varve-sync-each',
  about: 'varve/synchronous with commit() after each write: one append per write.',
  durabilities: ['relaxed'],
  only: 'point writes',
  open: async (name, options) => syncSession(await openStore(name, options), true),
};
