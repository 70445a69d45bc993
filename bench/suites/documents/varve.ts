/** `varve/collections` over a store in OPFS, its engine in a worker. */

import { deleteStore, type Key, open } from 'varve';
import { collection } from 'varve/collections';
import type { Person } from './document.ts';
import type { DocumentEngine } from './store.ts';

export const varveDocuments: DocumentEngine = {
  name: 'varve',
  role: 'varve',
  async open(name) {
    const db = await open<Key, unknown>(name);
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
