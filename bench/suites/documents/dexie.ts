/** Dexie: a table with an inbound key and the same indexes, each call as its documentation has it, `relaxed`. */

import type { Table } from 'dexie';
import { dexie } from '../../peers/dexie.ts';
import type { Person } from './document.ts';
import type { DocumentEngine } from './store.ts';

const TABLE = 'people';

export const dexieDocuments: DocumentEngine = {
  name: dexie.name,
  role: 'peer',
  async open(name) {
    const { Dexie } = await import('dexie');
    const db = new Dexie(name, { chromeTransactionDurability: 'relaxed' });
    db.version(1).stores({ [TABLE]: 'id, &email, team, *skills, joined' });
    await db.open();
    const people: Table<Person, string> = db.table(TABLE);
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
