/**
 * Raw IndexedDB as experts write it: one transaction per group with the durability of the row, committed explicitly, ranges
 * through `getAll` (or `getAllRecords` where the browser has it).
 *
 * Invariant: a promise resolves at the transaction's `complete`, never at the request's `success`: that is when
 * IndexedDB acknowledges a write.
 */

import type { AsyncSession, Engine } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { engineOf } from './library.ts';
import { getsThenSets, setsOf } from './runs.ts';

const STORE = 'entries';
/** Point calls of one transaction in the grouped peers: about as many as fit in 64 KiB of Varve's log. */
export const GROUP = 500;

/** `getAllRecords`, which the DOM types do not have yet. */
interface RecordsStore extends IDBObjectStore {
  getAllRecords?(options: {
    query?: IDBKeyRange;
    count: number;
  }): IDBRequest<{ key: IDBValidKey; value: Uint8Array }[]>;
}

type Found = IDBRequest<Uint8Array | undefined>;

function sessionOf(db: IDBDatabase, durability: 'relaxed' | 'strict'): AsyncSession {
  const begin = (mode: IDBTransactionMode, level = durability): IDBObjectStore =>
    db.transaction(STORE, mode, { durability: level }).objectStore(STORE);
  const made = (store: IDBObjectStore, run: (store: IDBObjectStore) => void): Promise<void> => {
    run(store);
    store.transaction.commit();
    return complete(store.transaction);
  };
  const write = (run: (store: IDBObjectStore) => void): Promise<void> => made(begin('readwrite'), run);
  const read = (): RecordsStore => db.transaction(STORE, 'readonly').objectStore(STORE);
  const wave: AsyncSession['wave'] = async (calls) => {
    const values = new Array<Uint8Array | undefined>(calls.length);
    const mode = calls.some((call) => call.value !== undefined) ? 'readwrite' : 'readonly';
    await made(begin(mode), (store) =>
      calls.forEach(({ key, value }, i) => {
        if (value === null) store.delete(key as IDBValidKey);
        else if (value !== undefined) store.put(value, key as IDBValidKey);
        else {
          const request = store.get(key as IDBValidKey) as Found;
          request.onsuccess = () => {
            values[i] = request.result;
          };
        }
      }),
    );
    return values;
  };
  return {
    kind: 'async',
    set: (key, value) => write((store) => store.put(value, key as IDBValidKey)),
    get: (key) => result(read().get(key as IDBValidKey)),
    delete: (key) => write((store) => store.delete(key as IDBValidKey)),
    batch: (entries) => wave(setsOf(entries)),
    deleteRange: (from, to) => write((store) => store.delete(IDBKeyRange.bound(from, to, false, true))),
    range: async (from, limit, sink) => {
      const store = read();
      const range = from === undefined ? undefined : IDBKeyRange.lowerBound(from);
      if (store.getAllRecords !== undefined) {
        const records = await result(store.getAllRecords({ ...(range && { query: range }), count: limit }));
        for (const { key, value } of records) sink.take(key as Key, value);
        return;
      }
      const values = result(store.getAll(range, limit) as IDBRequest<Uint8Array[]>);
      const keys = await result(store.getAllKeys(range, limit));
      for (const [i, value] of (await values).entries()) sink.take(keys[i] as Key, value);
    },
    wave,
    transact: async (entries) => (await wave(getsThenSets(entries))).slice(0, entries.keys.length),
    settle: async () => {
      // The browser decides when IndexedDB compacts; a strict transaction flushes its content.
      await made(begin('readwrite', 'strict'), (store) => store.delete(''));
      return true;
    },
    close: async () => db.close(),
  };
}

export function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export function complete(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

export const indexedDb = engineOf({
  name: 'indexeddb',
  about: 'Raw IndexedDB: one transaction per call; in flight: 100 calls in one transaction.',
  async open(name, { durability }) {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    return sessionOf(await result(request), durability === 'strict' ? 'strict' : 'relaxed');
  },
  async remove(name) {
    await result(indexedDB.deleteDatabase(name));
  },
});

export const indexedDbGrouped: Engine = {
  ...indexedDb,
  name: 'indexeddb-grouped',
  about: `Raw IndexedDB with ${GROUP} point calls in one transaction: the counterpart of a grouped set.`,
  accesses: ['worker'],
  grouped: GROUP,
  groupsInFlight: true,
  only: 'point writes',
};
