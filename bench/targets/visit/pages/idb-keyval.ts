/** The notes app over idb-keyval, which has no ranges: the app reads all notes. */

import { set, values } from 'idb-keyval';
import { type Note, start } from './app.ts';

start(
  Promise.resolve({
    find: async (beginning, limit) =>
      (await values<Note>()).filter(({ title }) => title.startsWith(beginning)).slice(0, limit),
    add: (note) => set(note.title, note),
  }),
);
