/**
 * idb-keyval over IndexedDB, with `setMany`, `getMany` and `delMany` for many entries: its readme calls them faster.
 * It sets no durability, so a write has the browser's standard, in Chromium `relaxed`.
 */

import type { UseStore } from 'idb-keyval';
import { type AsyncSession, cannot } from '../core/engine.ts';
import { engineOf } from './library.ts';
import { settled, waveOfRuns } from './runs.ts';

const NAME = 'idb-keyval';
const STORE = 'entries';

type Library = typeof import('idb-keyval');

function sessionOf(library: Library, store: UseStore): AsyncSession {
  const batch: AsyncSession['batch'] = ({ keys, values }) => {
    const entries = keys.map((key, i): [IDBValidKey, Uint8Array] => [key as IDBValidKey, values[i] as Uint8Array]);
    return library.setMany(entries, store);
  };
  return {
    kind: 'async',
    set: (key, value) => library.set(key as IDBValidKey, value, store),
    get: (key) => library.get<Uint8Array>(key as IDBValidKey, store),
    delete: (key) => library.del(key as IDBValidKey, store),
    batch,
    range: async () => cannot(NAME, 'range'),
    wave: waveOfRuns({
      set: batch,
      get: ({ keys }) => library.getMany<Uint8Array>(keys as IDBValidKey[], store),
      delete: ({ keys }) => library.delMany(keys as IDBValidKey[], store),
    }),
    settle: settled,
    // The library has no call for it; every transaction has its connection.
    close: () => store('readonly', ({ transaction }) => transaction.db.close()),
  };
}

export const idbKeyval = engineOf(
  {
    name: NAME,
    url: 'https://github.com/jakearchibald/idb-keyval',
    about:
      'idb-keyval: set, get and del, one transaction each; in flight and for batches setMany, getMany and delMany.',
    recommended:
      'A store of its own by createStore; setMany and getMany rather than many single calls (github.com/jakearchibald/idb-keyval#readme).',
    durabilities: ['relaxed'],
    async open(name) {
      const library = await import('idb-keyval');
      const store = library.createStore(name, STORE);
      // The first call opens the database: here a part of opening.
      await store('readonly', () => undefined);
      return sessionOf(library, store);
    },
    async remove(name) {
      const { promisifyRequest } = await import('idb-keyval');
      await promisifyRequest(indexedDB.deleteDatabase(name));
    },
  },
  'range',
  'deleteRange',
  'transaction',
);
