/** The notes app without a store: what the page itself costs. */

import { type Note, start } from './app.ts';

const notes: Note[] = [];

start(
  Promise.resolve({
    find: async (beginning, limit) => notes.filter(({ title }) => title.startsWith(beginning)).slice(0, limit),
    add: async (note) => notes.push(note),
  }),
);
