/** Dexie: a table with an inbound key and the same indexes, each call as its documentation has it, `relaxed`. */

import type { Table } from 'dexie';
import { dexie } from '../../peers/dexie.ts';
import type { Person } from './document.ts';
import type { DocumentEngine, DocumentStore } from './store.ts';

const TABLE = 'people';

class DexieDocuments implements DocumentStore {
  readonly #people: Table<Person, string>;

  constructor(people: Table<Person, string>) {
    this.#people = people;
  }

  insert(person: Person): Promise<unknown> {
    return this.#people.add(person);
  }

  insertMany(people: readonly Person[]): Promise<unknown> {
    return this.#people.bulkAdd(people);
  }

  get(id: string): Promise<Person | undefined> {
    return this.#people.get(id);
  }

  update(id: string, change: (old: Person) => Person): Promise<unknown> {
    return this.#people.update(id, (person, holder) => {
      holder.value = change(person);
    });
  }

  delete(id: string): Promise<unknown> {
    return this.#people.delete(id);
  }

  ofTeam(team: string, limit: number): Promise<Person[]> {
    return this.#people.where('team').equals(team).limit(limit).toArray();
  }

  async stream(from: Date, take: (person: Person) => boolean): Promise<void> {
    let goes = true;
    // `until` ends the cursor that `each` walks.
    await this.#people
      .where('joined')
      .aboveOrEqual(from)
      .until(() => !goes)
      .each((person) => {
        goes = take(person);
      });
  }

  async close(): Promise<void> {
    this.#people.db.close();
  }
}

export const dexieDocuments: DocumentEngine = {
  name: dexie.name,
  role: 'peer',
  async open(name) {
    const { Dexie } = await import('dexie');
    const db = new Dexie(name, { chromeTransactionDurability: 'relaxed' });
    db.version(1).stores({ [TABLE]: 'id, &email, team, *skills, joined' });
    await db.open();
    return new DexieDocuments(db.table(TABLE));
  },
  remove: (name) => dexie.remove(name),
};
