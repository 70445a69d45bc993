/** `varve/collections` over a store in OPFS, its engine in a worker. */

import { deleteStore, type Key, open, type Store } from 'varve';
import { collection } from 'varve/collections';
import type { Person } from './document.ts';
import type { DocumentEngine, DocumentStore } from './store.ts';

function peopleOf(db: Store<Key, unknown>) {
  return collection<Person>()(db, 'people', {
    key: 'id',
    indexes: {
      email: { of: 'email', unique: true },
      team: 'team',
      skills: { of: 'skills', multi: true },
      joined: 'joined',
    },
  });
}

class VarveDocuments implements DocumentStore {
  readonly #db: Store<Key, unknown>;
  readonly #people: ReturnType<typeof peopleOf>;

  constructor(db: Store<Key, unknown>) {
    this.#db = db;
    this.#people = peopleOf(db);
  }

  ready(): Promise<void> {
    return this.#people.ready();
  }

  insert(person: Person): Promise<unknown> {
    return this.#people.insert(person);
  }

  insertMany(people: readonly Person[]): Promise<unknown> {
    return this.#people.insertMany(people);
  }

  get(id: string): Promise<Person | undefined> {
    return this.#people.get(id);
  }

  update(id: string, change: (old: Person) => Person): Promise<unknown> {
    return this.#people.update(id, change);
  }

  delete(id: string): Promise<unknown> {
    return this.#people.delete(id);
  }

  ofTeam(team: string, limit: number): Promise<Person[]> {
    return this.#people.find('team', { eq: team, limit }).toArray();
  }

  async stream(from: Date, take: (person: Person) => boolean): Promise<void> {
    for await (const person of this.#people.find('joined', { gte: from })) if (!take(person)) return;
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}

export const varveDocuments: DocumentEngine = {
  name: 'varve',
  role: 'varve',
  async open(name) {
    const store = new VarveDocuments(await open(name));
    await store.ready();
    return store;
  },
  remove: (name) => deleteStore(name),
};
