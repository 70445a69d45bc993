/** The `idb` library, as its readme shows it: `db.put`, `db.get`, one transaction each. */

import type { IDBPDatabase } from 'idb';
import type { AsyncSession } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { engineOf } from './library.ts';
import { settled, waveOfCalls } from './runs.ts';

const STORE = 'entries';

interface Writing {
  put(value: Uint8Array | undefined, key: IDBValidKey): Promise<unknown>;
  delete(key: IDBValidKey | IDBKeyRange): Promise<unknown>;
}

function sessionOf(db: IDBPDatabase, durability: 'relaxed' | 'strict'): AsyncSession {
  const write = (run: (store: Writing) => Promise<unknown>[]): Promise<unknown> => {
    const transaction = db.transaction(STORE, 'readwrite', { durability });
    return Promise.all([...run(transaction.store), transaction.done]);
  };
  const points: Pick<AsyncSession, 'get' | 'set' | 'delete'> = {
    get: (key) => db.get(STORE, key as IDBValidKey),
    set: (key, value) => write((store) => [store.put(value, key as IDBValidKey)]),
    delete: (key) => write((store) => [store.delete(key as IDBValidKey)]),
  };
  return {
    kind: 'async',
    ...points,
    deleteRange: (from, to) => write((store) => [store.delete(IDBKeyRange.bound(from, to, false, true))]),
    batch: ({ keys, values }) => write((store) => keys.map((key, i) => store.put(values[i], key as IDBValidKey))),
    range: async (from, limit, sink) => {
      const range = from === undefined ? undefined : IDBKeyRange.lowerBound(from);
      const { store } = db.transaction(STORE, 'readonly');
      const [keys, values] = await Promise.all([store.getAllKeys(range, limit), store.getAll(range, limit)]);
      for (let i = 0; i < keys.length; i++) sink.take(keys[i] as Key, values[i]);
    },
    wave: waveOfCalls(points),
    settle: settled,
    close: async () => db.close(),
  };
}

export const idb = engineOf(
  {
    name: 'idb',
    url: 'https://github.com/jakearchibald/idb',
    recommended:
      'A transaction with tx.store and tx.done awaited together, db.get for one value (github.com/jakearchibald/idb#readme).',
    about: 'The idb library: one transaction per call; in flight: 100 transactions.',
    async open(name, { durability }) {
      const { openDB } = await import('idb');
      const db = await openDB(name, 1, { upgrade: (upgraded) => void upgraded.createObjectStore(STORE) });
      return sessionOf(db, durability === 'strict' ? 'strict' : 'relaxed');
    },
    remove: async (name) => (await import('idb')).deleteDB(name),
  },
  'transaction',
);
