/**
 * The stores of documents that the suite compares: a primary key and indexes over `email` (unique), `team`, `skills` (several
 * values) and `joined`.
 *
 * Invariant: every method resolves when it is done as durably as `relaxed` asks; reads deliver documents of their own.
 */

import type { Table } from 'dexie';
import { deleteStore, type Key, open } from 'varve';
import { collection } from 'varve/collections';
import type { Role } from '../../core/engine.ts';
import { dexie } from '../../peers/dexie.ts';
import { complete, result } from '../../peers/indexeddb.ts';
import type { Person } from './document.ts';

export interface DocumentStore {
  insert(person: Person): Promise<unknown>;
  insertMany(people: readonly Person[]): Promise<unknown>;
  get(id: string): Promise<Person | undefined>;
  /** Reads the document and writes what `change` makes of it, atomically. */
  update(id: string, change: (old: Person) => Person): Promise<unknown>;
  delete(id: string): Promise<unknown>;
  /** The first `limit` documents of a team, by their keys. */
  ofTeam(team: string, limit: number): Promise<Person[]>;
  /** Hands over the documents that joined from `from` on, in that order, one by one, until `take` answers false. */
  stream(from: Date, take: (person: Person) => boolean): Promise<void>;
  close(): Promise<void>;
}

export interface DocumentEngine {
  readonly name: string;
  readonly role: Role;
  open(name: string): Promise<DocumentStore>;
  remove(name: string): Promise<unknown>;
}

/** `varve/collections` over a store in OPFS, its engine in a worker. */
const varveDocuments: DocumentEngine = {
  name: 'varve',
  role: 'varve',
  async open(name) {
    const db = await open<Key, unknown>(name, { cache: false });
    const people = collection<Person>()(db, 'people', {
      key: 'id',
      indexes: {
        email: { of: 'email', unique: true },
        team: 'team',
        skills: { of: 'skills', multi: true },
        joined: 'joined',
      },
    });
    await people.ready();
    return {
      insert: (person) => people.insert(person),
      insertMany: (many) => people.insertMany(many),
      get: (id) => people.get(id),
      update: (id, change) => people.update(id, change),
      delete: (id) => people.delete(id),
      ofTeam: (team, limit) => people.find('team', { eq: team, limit }).toArray(),
      stream: async (from, take) => {
        for await (const person of people.find('joined', { gte: from })) if (!take(person)) return;
      },
      close: () => db.close(),
    };
  },
  remove: (name) => deleteStore(name),
};

function documentsOf(db: IDBDatabase): DocumentStore {
  const read = (): IDBObjectStore => db.transaction('people').objectStore('people');
  const write = (run: (store: IDBObjectStore) => void): Promise<void> => {
    const transaction = db.transaction('people', 'readwrite', { durability: 'relaxed' });
    run(transaction.objectStore('people'));
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

/** IndexedDB as it is: one transaction for each call, committed at once. */
const indexedDbDocuments: DocumentEngine = {
  name: 'indexeddb',
  role: 'peer',
  async open(name) {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      const store = request.result.createObjectStore('people', { keyPath: 'id' });
      store.createIndex('email', 'email', { unique: true });
      store.createIndex('team', 'team');
      store.createIndex('skills', 'skills', { multiEntry: true });
      store.createIndex('joined', 'joined');
    };
    return documentsOf(await result(request));
  },
  remove: (name) => result(indexedDB.deleteDatabase(name)),
};

/** Dexie: a table with an inbound key, each call as its documentation has it. */
const dexieDocuments: DocumentEngine = {
  name: dexie.name,
  role: 'peer',
  async open(name) {
    const { Dexie } = await import('dexie');
    const db = new Dexie(name, { chromeTransactionDurability: 'relaxed' });
    db.version(1).stores({ people: 'id, &email, team, *skills, joined' });
    await db.open();
    const people: Table<Person, string> = db.table('people');
    return {
      insert: (person) => people.add(person),
      insertMany: (many) => people.bulkAdd(many),
      get: (id) => people.get(id),
      update: (id, change) =>
        people.update(id, (person, holder) => {
          holder.value = change(person);
        }),
      delete: (id) => people.delete(id),
      ofTeam: (team, limit) => people.where('team').equals(team).limit(limit).toArray(),
      stream: async (from, take) => {
        let goes = true;
        const found = people.where('joined').aboveOrEqual(from);
        // `until` ends the cursor that `each` walks.
        await found
          .until(() => !goes)
          .each((person) => {
            goes = take(person);
          });
      },
      close: async () => db.close(),
    };
  },
  remove: (name) => dexie.remove(name),
};

export const ENGINES: readonly DocumentEngine[] = [varveDocuments, indexedDbDocuments, dexieDocuments];
