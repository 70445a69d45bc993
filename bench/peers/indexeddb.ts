/**
 * Raw IndexedDB, written the way its best users write it: one transaction per group with the durability of the row,
 * committed explicitly, ranges through `getAll` (or `getAllRecords` where the browser has it).
 *
 * Invariant: a promise resolves at the transaction's `complete`, never at the request's `success`: that is when
 * IndexedDB acknowledges a write.
 */

import type { AsyncSession, BatchEntries, Engine, PointCall, SessionOptions, Sink } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';

const STORE = 'entries';
/** Sets that `indexeddb-grouped` joins: about what 64 KiB of Varve's log hold. */
const GROUP = 500;

/** A record of `getAllRecords`, which the DOM types do not have yet. */
interface RecordOfAll {
  readonly key: IDBValidKey;
  readonly value: Uint8Array;
}

interface RecordsStore {
  getAllRecords(options: { query?: IDBKeyRange; count: number }): IDBRequest<RecordOfAll[]>;
}

function hasRecords(store: IDBObjectStore): store is IDBObjectStore & RecordsStore {
  return 'getAllRecords' in store;
}

class IndexedDbSession implements AsyncSession {
  readonly kind = 'async';
  readonly #db: IDBDatabase;
  readonly #durability: 'relaxed' | 'strict';

  constructor(db: IDBDatabase, options: SessionOptions) {
    this.#db = db;
    this.#durability = options.durability === 'strict' ? 'strict' : 'relaxed';
  }

  set(key: Key, value: Uint8Array): Promise<void> {
    return this.#write((store) => store.put(value, key as IDBValidKey));
  }

  delete(key: Key): Promise<void> {
    return this.#write((store) => store.delete(key as IDBValidKey));
  }

  batch({ keys, values }: BatchEntries): Promise<void> {
    return this.#write((store) => {
      for (let i = 0; i < keys.length; i++) store.put(values[i], keys[i] as IDBValidKey);
    });
  }

  deleteRange(from: Key, to: Key): Promise<void> {
    return this.#write((store) => store.delete(IDBKeyRange.bound(from, to, false, true)));
  }

  get(key: Key): Promise<Uint8Array | undefined> {
    return result(this.#read().get(key as IDBValidKey));
  }

  async range(from: Key | undefined, limit: number, sink: Sink): Promise<void> {
    const store = this.#read();
    const range = from === undefined ? undefined : IDBKeyRange.lowerBound(from);
    if (hasRecords(store)) {
      const records = await result(store.getAllRecords({ ...(range && { query: range }), count: limit }));
      for (const { key, value } of records) sink.take(key as Key, value);
      return;
    }
    const [keys, values] = await Promise.all([
      result(store.getAllKeys(range, limit)),
      result(store.getAll(range, limit) as IDBRequest<Uint8Array[]>),
    ]);
    for (let i = 0; i < keys.length; i++) sink.take(keys[i] as Key, values[i] as Uint8Array);
  }

  async wave(calls: readonly PointCall[]): Promise<readonly (Uint8Array | undefined)[]> {
    const writes = calls.some((call) => call.value !== undefined);
    const values = new Array<Uint8Array | undefined>(calls.length);
    const run = (store: IDBObjectStore): void =>
      calls.forEach(({ key, value }, i) => {
        if (value === null) store.delete(key as IDBValidKey);
        else if (value !== undefined) store.put(value, key as IDBValidKey);
        else {
          const request = store.get(key as IDBValidKey) as IDBRequest<Uint8Array | undefined>;
          request.onsuccess = () => {
            values[i] = request.result;
          };
        }
      });
    if (writes) await this.#write(run);
    else await complete(this.#transaction('readonly', run));
    return values;
  }

  async transact({ keys, values }: BatchEntries): Promise<readonly (Uint8Array | undefined)[]> {
    const transaction = this.#db.transaction(STORE, 'readwrite', { durability: this.#durability });
    const store = transaction.objectStore(STORE);
    const done = complete(transaction);
    const found = await Promise.all(
      keys.map((key) => result(store.get(key as IDBValidKey) as IDBRequest<Uint8Array | undefined>)),
    );
    keys.forEach((key, i) => {
      store.put(values[i], key as IDBValidKey);
    });
    transaction.commit();
    await done;
    return found;
  }

  async settle(): Promise<boolean> {
    // IndexedDB compacts when it likes; a strict transaction flushes what it holds.
    const transaction = this.#db.transaction(STORE, 'readwrite', { durability: 'strict' });
    transaction.objectStore(STORE).delete('');
    await complete(transaction);
    return true;
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #read(): IDBObjectStore {
    return this.#db.transaction(STORE, 'readonly').objectStore(STORE);
  }

  #write(run: (store: IDBObjectStore) => void): Promise<void> {
    return complete(this.#transaction('readwrite', run));
  }

  #transaction(mode: 'readonly' | 'readwrite', run: (store: IDBObjectStore) => void): IDBTransaction {
    const transaction = this.#db.transaction(STORE, mode, { durability: this.#durability });
    run(transaction.objectStore(STORE));
    transaction.commit();
    return transaction;
  }
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function complete(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

async function openDatabase(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return result(request);
}

async function removeDatabase(name: string): Promise<void> {
  await result(indexedDB.deleteDatabase(name));
}

const shared: Pick<Engine, 'role' | 'durabilities' | 'abilities' | 'open' | 'remove'> = {
  role: 'peer',
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'tuple', 'transaction'],
  durabilities: ['relaxed', 'strict'],
  open: async (name, options) => new IndexedDbSession(await openDatabase(name), options),
  remove: removeDatabase,
};

export const indexedDb: Engine = {
  ...shared,
  name: 'indexeddb',
  about: 'Raw IndexedDB: one transaction per call; in flight: 100 calls in one transaction.',
  accesses: ['worker', 'page', 'inflight'],
};

export const indexedDbGrouped: Engine = {
  ...shared,
  name: 'indexeddb-grouped',
  about: `Raw IndexedDB with ${GROUP} point calls in one transaction: the counterpart of a grouped set.`,
  accesses: ['worker'],
  grouped: GROUP,
  groupsInFlight: true,
  only: 'point writes',
};
