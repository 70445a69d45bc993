/** Varve through `varve`: every call is awaited. */

import { open } from 'varve';
import { files } from 'varve/fs';
import { versionOf } from '../../packages.ts';
import type { FileEngine, Pair } from '../engine.ts';

/** `varve` over `varve/fs`. */
export function varve(): FileEngine {
  return {
    name: 'varve',
    version: `varve ${versionOf('..')}`,
    writes: { relaxed: 'each awaited', strict: "each awaited, durability: 'strict'" },
    open: async (directory, level) => {
      const store = await open<string, Uint8Array>('bench', { storage: files(directory), durability: level });
      return {
        set: async (key, value) => void (await store.set(key, value)),
        get: (key) => store.get(key),
        delete: async (key) => void (await store.delete(key)),
        batch: async (pairs) => void (await store.setMany(pairs)),
        range: async (gte, limit) => {
          const found: Pair[] = [];
          for await (const pair of store.entries({ gte, limit })) found.push(pair);
          return found;
        },
        deleteRange: async (gte, lt) => void (await store.deleteRange({ gte, lt })),
        report: () => store.stats(),
        all: () => store.entries(),
        settle: () => store.compact(),
        close: () => store.close(),
      };
    },
  };
}
