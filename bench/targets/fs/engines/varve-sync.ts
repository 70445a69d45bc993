/** Varve through `varve/synchronous`: every write is logged before the call returns. */

import { files } from 'varve/fs';
import { open, type SyncStore } from 'varve/synchronous';
import { versionOf } from '../../packages.ts';
import type { FileEngine, FileStore, Level } from '../engine.ts';

/** `varve/synchronous` over `varve/fs`. */
export function varveSync(): FileEngine {
  return {
    name: 'varve-sync',
    version: `varve ${versionOf('..')}`,
    writes: { relaxed: 'commit() after each', strict: "durability: 'strict'" },
    open: async (directory, level) => {
      const store = await open<string, Uint8Array>('bench', { storage: files(directory), durability: level });
      return storeOf(store, level);
    },
  };
}

function storeOf(store: SyncStore<string, Uint8Array>, level: Level): FileStore {
  /** A strict write is flushed when `set` returns; a relaxed one is logged by `commit`. */
  const logged = (write: () => unknown): void => {
    write();
    if (level === 'relaxed') store.commit();
  };
  return {
    set: (key, value) => logged(() => store.set(key, value)),
    get: (key) => store.get(key),
    delete: (key) => logged(() => store.delete(key)),
    batch: (pairs) => logged(() => store.setMany(pairs)),
    range: (gte, limit) => [...store.entries({ gte, limit })],
    deleteRange: (gte, lt) => logged(() => store.deleteRange({ gte, lt })),
    report: () => store.stats(),
    all: () => store.entries(),
    settle: () => store.compact(),
    close: () => store.close(),
  };
}
