// The collection of a history: its calls, and the model of its documents. After all calls, the entries of the indexes are those of the
// present documents, and finding is filtering.

import type { Key, Store } from 'varve';
import { collection } from 'varve/collections';
import type { Note, NoteCall } from './history.ts';
import type { Apply } from './orders.ts';
import { spoil, textOf } from './values.ts';

/** Documents by their keys. */
export type NotesState = ReadonlyMap<number, Note>;

/** The collection over a store. */
export function notesOf(db: Store<Key, unknown>) {
  return collection<Note>()(db, 'notes', {
    key: 'id',
    indexes: {
      edited: 'edited',
      tags: { of: 'tags', multi: true },
      title: { of: (note) => note.title.toLowerCase(), unique: true },
      place: ['folder', 'edited'],
    },
  });
}

export type Notes = ReturnType<typeof notesOf>;

const CONFLICT = 'VARVE_CONFLICT';
const RETRY = 'VARVE_RETRY';

/** The effect of a call on the documents. */
export const applyNote: Apply<NotesState, NoteCall> = (state, call) => {
  const same = (answer: string) => ({ state, answer });
  const withNote = (note: Note, answer: string) => {
    const others = [...state.values()].filter(({ id }) => id !== note.id);
    if (others.some(({ title }) => title.toLowerCase() === note.title.toLowerCase())) return same(CONFLICT);
    return { state: new Map(state).set(note.id, note), answer };
  };
  switch (call.op) {
    case 'insert':
      return state.has(call.note.id) ? same(CONFLICT) : withNote(call.note, textOf(call.note.id));
    case 'put':
      return withNote(call.note, textOf(call.note.id));
    case 'insertMany': {
      let next = state;
      for (const note of call.notes) {
        const inserted = applyNote(next, { op: 'insert', note });
        if (inserted.answer === CONFLICT) return same(CONFLICT);
        next = inserted.state;
      }
      return { state: next, answer: textOf(call.notes.map(({ id }) => id)) };
    }
    case 'update': {
      const old = state.get(call.id);
      if (old === undefined) return same('undefined');
      const note = { ...old, ...call.patch };
      return withNote(note, textOf(note));
    }
    case 'delete': {
      const next = new Map(state);
      return { answer: String(next.delete(call.id)), state: next };
    }
    case 'clear':
      return { state: new Map(), answer: 'undefined' };
    case 'reindex':
      return same('undefined');
    case 'check':
      return same('[]');
    case 'countBy':
      return same(textOf(countsOf([...state.values()])));
    case 'page': {
      const { edited, id } = call.after;
      const isAfter = (note: Note): boolean => note.edited > edited || (note.edited === edited && note.id > id);
      const later = [...state.values()].filter(isAfter).sort((a, b) => a.edited - b.edited || a.id - b.id);
      return same(textOf(later.slice(0, 2)));
    }
  }
};

/** How many documents have each tag. */
function countsOf(all: readonly Note[]): [string, number][] {
  const tags = [...new Set(all.flatMap(({ tags }) => tags))].sort();
  return tags.map((tag) => [tag, all.filter(({ tags }) => tags.includes(tag)).length]);
}

/**
 * Makes a call; resolves with its answer. With `mayDie` its refusal, or its read point, may be lost with the leader: undefined, and the
 * call has done nothing.
 */
export async function callNote(notes: Notes, call: NoteCall, mayDie = false): Promise<string | undefined> {
  try {
    return textOf(await made(notes, call));
  } catch (error) {
    const code = (error as { code?: unknown })?.code;
    if (code === CONFLICT) return CONFLICT;
    if (mayDie && code === RETRY) return undefined;
    throw new Error(`${JSON.stringify(call)}: ${error}`, { cause: error });
  }
}

function made(notes: Notes, spec: NoteCall): Promise<unknown> {
  const call = structuredClone(spec);
  const result = make(notes, call);
  if (call.op === 'insert' || call.op === 'put') spoil(call.note.tags, call.note);
  else if (call.op === 'insertMany') spoil(...call.notes, call.notes);
  else if (call.op === 'update') spoil(call.patch);
  return result;
}

function make(notes: Notes, call: NoteCall): Promise<unknown> {
  switch (call.op) {
    case 'insert':
    case 'put':
      return notes[call.op](call.note);
    case 'insertMany':
      return notes.insertMany(call.notes);
    case 'update': {
      const { patch } = call.byFunction ? structuredClone(call) : call;
      return notes.update(call.id, call.byFunction ? (note) => ({ ...note, ...patch }) : patch);
    }
    case 'delete':
      return notes.delete(call.id);
    case 'clear':
      return notes.clear();
    case 'reindex':
      return notes.reindex();
    case 'check':
      return notes.check().then(({ differences }) => differences);
    case 'countBy':
      return notes.countBy('tags').toArray();
    case 'page':
      return notes.find('edited', { after: call.after, limit: 2 }).toArray();
  }
}

/** The documents of a store. */
export async function notesFound(notes: Notes): Promise<NotesState> {
  return new Map((await notes.find().toArray()).map((note) => [note.id, note]));
}

export function notesText(state: NotesState): string {
  return textOf([...state.values()].sort((a, b) => a.id - b.id));
}

/** The fault in the indexes of these documents, if there is one. */
export async function indexFault(
  db: Store<Key, unknown>,
  notes: Notes,
  state: NotesState,
): Promise<string | undefined> {
  const found: string[] = [];
  for await (const [key, value] of db.entries({ prefix: ['notes', 'by'] }))
    found.push(`${textOf(key)}: ${textOf(value)}`);
  const expected = [...state.values()].flatMap(entriesOf);
  if (textOf(found.sort()) !== textOf(expected.sort())) return `the index entries are ${found}, not ${expected}`;
  const all = [...state.values()];
  for (const tag of ['x', 'y', 'z']) {
    const tagged = all.filter(({ tags }) => tags.includes(tag)).map(({ id }) => id);
    const keys = (await notes.keys('tags', tag).toArray()).sort((a, b) => a - b);
    if (textOf(keys) !== textOf(tagged.sort((a, b) => a - b))) return `under the tag ${tag} are ${keys}, not ${tagged}`;
    if ((await notes.count('tags', tag)) !== tagged.length) return `the tag ${tag} is counted otherwise than found`;
  }
  const placed = all.filter(({ folder }) => folder === 'f').sort((a, b) => b.edited - a.edited || b.id - a.id);
  for (let first = 0, after: Note | undefined; first <= placed.length; first += 3) {
    const documents = await notes.find('place', { prefix: ['f'], reverse: true, limit: 3, after }).toArray();
    if (textOf(documents) !== textOf(placed.slice(first, first + 3))) return `in the folder are ${textOf(documents)}`;
    after = documents.at(-1);
  }
  const counted = textOf(await notes.countBy('tags').toArray());
  if (counted !== textOf(countsOf(all))) return `the counts of the tags are ${counted}`;
  return undefined;
}

function entriesOf({ id, title, tags, folder, edited }: Note): string[] {
  const entries: [Key, unknown][] = [
    [['notes', 'by', 'edited', edited, id], true],
    [['notes', 'by', 'title', title.toLowerCase()], id],
    ...[...new Set(tags)].map((tag): [Key, unknown] => [['notes', 'by', 'tags', tag, id], true]),
  ];
  if (folder !== undefined) entries.push([['notes', 'by', 'place', [folder, edited], id], true]);
  return entries.map(([key, value]) => `${textOf(key)}: ${textOf(value)}`);
}
