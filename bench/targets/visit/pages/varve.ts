/** The notes app over Varve, as its guide has it. */

import { open } from 'varve';
import { type Note, start } from './app.ts';

start(
  open<string, Note>('notes').then((db) => ({
    find: (prefix, limit) => db.values({ prefix, limit }).toArray(),
    add: (note) => db.set(note.title, note),
  })),
);
