/** A collection for the tests: every kind of index over one type of document. */

import { expect } from 'vitest';
import { type Collection, collection } from '../../../js/src/collections.ts';
import type { View } from '../../../js/src/store/view.ts';
import type { Key } from '../../../js/src/types.ts';

/** A document. */
export interface Note {
  readonly id: number;
  readonly title: string;
  readonly tags: readonly string[];
  readonly folder?: string | undefined;
  readonly edited: Date;
  /** Names that no other document may have. */
  readonly aliases?: readonly string[] | undefined;
}

/** The collection in a store, or in a view of one. */
export function notesOf(db: View<Key, unknown>, name = 'notes') {
  return collection<Note>()(db, name, {
    key: 'id',
    indexes: {
      edited: 'edited',
      tags: { of: 'tags', multi: true },
      title: { of: (note) => note.title.toLowerCase(), unique: true },
      place: ['folder', 'edited'],
      alias: { of: 'aliases', multi: true, unique: true },
    },
  });
}

/** The result of `notesOf`. */
export type Notes = ReturnType<typeof notesOf>;

/** A document with the properties that matter to a test. */
export function note(id: number, rest: Partial<Note> = {}): Note {
  return { id, title: `Note ${id}`, tags: [], edited: new Date(1000 * id), ...rest };
}

/** Everything that the store keeps for some documents, in order. */
export function entriesFor(notes: Iterable<Note>, name = 'notes'): [Key, unknown][] {
  const entries: [Key, unknown][] = [];
  for (const one of notes) {
    const { id, title, tags, folder, edited, aliases = [] } = one;
    entries.push([[name, 'doc', id], one]);
    entries.push([[name, 'by', 'edited', edited, id], true]);
    entries.push([[name, 'by', 'title', title.toLowerCase()], id]);
    for (const tag of new Set(tags)) entries.push([[name, 'by', 'tags', tag, id], true]);
    for (const alias of new Set(aliases)) entries.push([[name, 'by', 'alias', alias], id]);
    if (folder !== undefined) entries.push([[name, 'by', 'place', [folder, edited], id], true]);
  }
  return entries;
}

/** The documents alone, as the store keeps them. */
export function documents(notes: Iterable<Note>): [Key, unknown][] {
  return Array.from(notes, (one) => [['notes', 'doc', one.id], one]);
}

/** The part of a store that belongs to a collection: documents and entries. */
export async function kept(db: View<Key, unknown>, name = 'notes'): Promise<[Key, unknown][]> {
  const all: [Key, unknown][] = [];
  for (const kind of ['by', 'doc']) {
    for await (const entry of db.entries({ prefix: [name, kind] })) all.push(entry);
  }
  return all;
}

/** Fails unless the store keeps these documents and their entries, and nothing else. */
export async function expectKept(db: View<Key, unknown>, notes: Iterable<Note>, name = 'notes'): Promise<void> {
  const text = ([key, value]: [Key, unknown]): string => JSON.stringify([key, value]);
  const found = (await kept(db, name)).map(text).sort();
  expect(found).toStrictEqual(entriesFor(notes, name).map(text).sort());
}

/** The keys of the documents that are found. */
export async function ids<T extends { readonly id: K }, K>(found: AsyncIterable<T>): Promise<K[]> {
  const all: K[] = [];
  for await (const { id } of found) all.push(id);
  return all;
}

/** Any collection. */
export type AnyCollection = Collection<object, Key, object>;
