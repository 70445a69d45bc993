/** The notes app over Dexie, as its documentation has it. */

import { Dexie, type EntityTable } from 'dexie';
import { type Note, start } from './app.ts';

const db = new Dexie('notes', { chromeTransactionDurability: 'relaxed' }) as Dexie & {
  notes: EntityTable<Note, 'title'>;
};
db.version(1).stores({ notes: 'title' });

start(
  Promise.resolve({
    find: (beginning, limit) => db.notes.where('title').startsWith(beginning).limit(limit).toArray(),
    add: (note) => db.notes.add(note),
  }),
);
