/** IndexedDB as it is: an object store with indexes, one transaction for each call, `relaxed`, committed at once. */

import { complete, result } from '../../peers/indexeddb.ts';
import type { DocumentEngine, DocumentStore } from './store.ts';

const STORE = 'people';

function documentsOf(db: IDBDatabase): DocumentStore {
  const read = (): IDBObjectStore => db.transaction(STORE).objectStore(STORE);
  const write = (run: (store: IDBObjectStore) => void): Promise<void> => {
    const transaction = db.transaction(STORE, 'readwrite', { durability: 'relaxed' });
    run(transaction.objectStore(STORE));
    return complete(transaction);
  };
  const insertMany: DocumentStore['insertMany'] = (people) =>
    write((store) => {
      for (const person of people) store.add(person);
      store.transaction.commit();
    });
  return {
    insert: (person) => insertMany([person]),
    insertMany,
    get: (id) => result(read().get(id)),
    update: (id, change) =>
      write((store) => {
        const request = store.get(id);
        request.onsuccess = () => {
          store.put(change(request.result));
          store.transaction.commit();
        };
      }),
    delete: (id) =>
      write((store) => {
        store.delete(id);
        store.transaction.commit();
      }),
    ofTeam: (team, limit) => result(read().index('team').getAll(team, limit)),
    stream: (from, take) => {
      const request = read().index('joined').openCursor(IDBKeyRange.lowerBound(from));
      return new Promise((resolve, reject) => {
        request.onerror = () => reject(request.error);
        request.onsuccess = () => {
          const cursor = request.result;
          if (cursor === null || !take(cursor.value)) resolve();
          else cursor.continue();
        };
      });
    },
    close: async () => db.close(),
  };
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
    return documentsOf(await result(request));
  },
  remove: (name) => result(indexedDB.deleteDatabase(name)),
};
