/** IndexedDB as it is: an object store with indexes, one transaction for each call, `relaxed`, committed at once. */

import type { Person } from './document.ts';
import type { DocumentEngine, DocumentStore } from './store.ts';

const STORE = 'people';

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

class IndexedDbDocuments implements DocumentStore {
  readonly #db: IDBDatabase;

  constructor(db: IDBDatabase) {
    this.#db = db;
  }

  insert(person: Person): Promise<unknown> {
    return this.insertMany([person]);
  }

  insertMany(people: readonly Person[]): Promise<unknown> {
    return this.#write((store) => {
      for (const person of people) store.add(person);
      store.transaction.commit();
    });
  }

  get(id: string): Promise<Person | undefined> {
    return result(this.#read().get(id));
  }

  update(id: string, change: (old: Person) => Person): Promise<unknown> {
    return this.#write((store) => {
      const request: IDBRequest<Person> = store.get(id);
      request.onsuccess = () => {
        store.put(change(request.result));
        store.transaction.commit();
      };
    });
  }

  delete(id: string): Promise<unknown> {
    return this.#write((store) => {
      store.delete(id);
      store.transaction.commit();
    });
  }

  ofTeam(team: string, limit: number): Promise<Person[]> {
    return result(this.#read().index('team').getAll(team, limit));
  }

  stream(from: Date, take: (person: Person) => boolean): Promise<void> {
    const request = this.#read().index('joined').openCursor(IDBKeyRange.lowerBound(from));
    return new Promise((resolve, reject) => {
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (cursor === null || !take(cursor.value)) resolve();
        else cursor.continue();
      };
    });
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #read(): IDBObjectStore {
    return this.#db.transaction(STORE).objectStore(STORE);
  }

  #write(run: (store: IDBObjectStore) => void): Promise<void> {
    const transaction = this.#db.transaction(STORE, 'readwrite', { durability: 'relaxed' });
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
      run(transaction.objectStore(STORE));
    });
  }
}

export const indexedDbDocuments: DocumentEngine = {
  name: 'indexeddb',
  role: 'peer',
  async open(name) {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      const store = request.result.createObjectStore(STORE, { keyPath: 'id' });
      store.createIndex('email', 'email', { unique: true });
      store.createIndex('team', 'team');
      store.createIndex('skills', 'skills', { multiEntry: true });
      store.createIndex('joined', 'joined');
    };
    return new IndexedDbDocuments(await result(request));
  },
  remove: (name) => result(indexedDB.deleteDatabase(name)),
};
