/** The notes app over Varve, as its guide has it. */

import { open } from 'varve';
import { type Note, start } from './app.ts';

start(
  open<string, Note>('notes').then((db) => ({
    find: async (prefix, limit) => {
      const found: Note[] = [];
      for await (const note of db.values({ prefix, limit })) found.push(note);
      return found;
    },
    add: (note) => db.set(note.title, note),
  })),
);
