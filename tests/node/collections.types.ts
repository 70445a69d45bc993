/**
 * Code of collections that the compiler must accept or refuse. It never runs: `tsc` checks it, and an expected error that does not come
 * is itself an error.
 */

import type { Key, Snapshot, Store, Transaction } from 'varve';
import { type Collection, collection, type Found, uuid7 } from 'varve/collections';

interface Note {
  readonly id: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly folder?: string;
  readonly edited: Date;
  readonly size: bigint | null;
  readonly author: { readonly name: string };
}

declare const db: Store<Key, unknown>;
declare const strings: Store<string, unknown>;
declare const numbers: Store<Key, number>;
declare const tx: Transaction<Key, unknown>;
declare const snapshot: Snapshot<Key, unknown>;

const notes = collection<Note>()(db, 'notes', {
  key: 'id',
  newKey: uuid7,
  indexes: {
    edited: 'edited',
    size: 'size',
    tags: { of: 'tags', multi: true },
    title: { of: (note) => note.title.toLowerCase(), unique: true },
    letters: { of: (note) => new Set(note.title), multi: true },
    author: (note) => note.author.name,
    place: ['folder', 'edited'],
    length: { of: (note) => (note.title === '' ? undefined : note.title.length) },
  },
});

/** Fails to compile unless it is exactly this type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(is: Same<A, B>): void => void is;

const rest = { title: '', tags: [], edited: new Date(), size: null, author: { name: '' } };

/** Calls of every kind; never called. */
export async function calls(): Promise<void> {
  same<Note | undefined, Awaited<ReturnType<typeof notes.get>>>(true);
  same<string, Awaited<ReturnType<typeof notes.insert>>>(true);

  // Values have the types of the indexed properties; absent properties have no values.
  notes.find('edited', { gte: new Date(), lt: new Date(), reverse: true, limit: 20 });
  notes.find('edited', new Date());
  notes.find('size', { gt: 1n });
  notes.find('tags', 'lake');
  notes.find('letters', { prefix: 'a' });
  notes.find('title', { prefix: 'si' });
  notes.find('author', { eq: 'ada' });
  notes.find('place', { prefix: ['work'], gte: ['work', new Date()] });
  notes.find('place', ['work', new Date()]);
  notes.find('length', { lte: 5 });
  notes.find({ gte: 'a', prefix: 'ab' });
  // @ts-expect-error: a string is no Date
  notes.find('edited', 'today');
  // @ts-expect-error: a bound of another type
  notes.find('edited', { gte: 5 });
  // @ts-expect-error: dates begin with nothing
  notes.find('edited', { prefix: new Date() });
  // @ts-expect-error: the value is a tag, not all of them
  notes.find('tags', ['lake']);
  // @ts-expect-error: no such index
  notes.find('nothing');
  // @ts-expect-error: a folder first
  notes.find('place', { prefix: [new Date()] });
  // @ts-expect-error: no such field
  notes.find('title', { after: 'a' });
  // @ts-expect-error: keys are strings
  notes.find({ gte: 5 });

  notes.find('edited', { after: { id: 'a', edited: new Date() }, limit: 20 });
  notes.count({ after: { id: 'a' } });
  // @ts-expect-error: no such property
  notes.find('edited', { after: { name: 'a' } });
  for await (const [size, count] of notes.countBy('size', { gt: 1n }))
    same<[bigint, number], [typeof size, typeof count]>(true);
  const places = await notes.distinct('place', { prefix: ['work'], reverse: true, limit: 3 }).toArray();
  same<(readonly [string, Date])[], typeof places>(true);
  // @ts-expect-error: after is for documents
  notes.distinct('tags', { after: { id: 'a' } });
  // @ts-expect-error: no such index
  notes.countBy('nothing');

  const found: Found<Note> = notes.find();
  for await (const note of found) same<Note, typeof note>(true);
  const keys = await notes.keys('edited').toArray();
  same<string[], typeof keys>(true);

  // A document may come without the key that is made for it.
  await notes.insert(rest);
  await notes.insert({ ...rest, id: 'own' }, { durability: 'strict' });
  await notes.insertMany([rest, { ...rest, id: 'own' }]);
  // @ts-expect-error: the title is missing
  await notes.insert({ tags: [], edited: new Date(), size: null, author: { name: '' } });
  // @ts-expect-error: keys are strings
  await notes.get(5);
  await notes.update('id', { title: 'Silt' });
  await notes.update('id', async (note) => ({ ...note, title: note.title.trim() }));
  // @ts-expect-error: no such property
  await notes.update('id', { name: 'Silt' });

  // Inside a transaction the same, in a snapshot only reads.
  await notes.in(tx).insert(rest);
  await notes.in(tx).find('tags', 'lake').toArray();
  await notes.in(snapshot).first('title', 'silt');
  // @ts-expect-error: a snapshot is not written
  await notes.in(snapshot).insert(rest);
  await notes.in(snapshot).get('id', { signal: AbortSignal.abort() });
  await notes.in(tx).get('id');
  await notes.in(tx).get('id', { signal: AbortSignal.abort() });
  await notes.in(tx).getMany(['id'], { signal: AbortSignal.abort() });
  await notes.in(tx).has('id', { signal: AbortSignal.abort() });
  await notes.in(tx).find('tags', { prefix: 'a', signal: AbortSignal.abort() }).toArray();
  // @ts-expect-error: the store itself has no fixed read point
  notes.in(db);
  db.live((view) => notes.in(view).count());
  // @ts-expect-error: the durability is that of the transaction
  await notes.in(tx).insert(rest, { durability: 'strict' });
}

/** Definitions of every kind. */
export function definitions(): void {
  const plain = collection<Note>()(db, 'plain', { key: ({ author, title }) => [author.name, title] as const });
  same<Collection<Note, readonly [string, string], Record<never, never>, Note>, typeof plain>(true);
  plain.find({ prefix: ['ada'] });
  // @ts-expect-error: it has no indexes
  plain.find('title');
  // @ts-expect-error: nobody makes its keys
  plain.insert({ title: '', tags: [], edited: new Date(), size: null, author: { name: '' }, id: undefined });
  const numbered = collection<{ id: number; at: Date }>()(db, 'numbered', { key: 'id', indexes: { at: 'at' } });
  // @ts-expect-error: without newKey the key is part of the document
  void numbered.insert({ at: new Date() });
  const inView = collection<{ id: number }>()(db.at(['team', 7]), 'numbered', { key: 'id' });
  void inView.get(5);
  // @ts-expect-error: the keys of the view are strings
  collection<Note>()(db.at<string>(['team']), 'bad', { key: 'id' });
  // @ts-expect-error: an object is no key
  collection<Note>()(db, 'bad', { key: 'author' });
  // @ts-expect-error: no such property
  collection<Note>()(db, 'bad', { key: 'id', indexes: { x: 'nothing' } });
  // @ts-expect-error: an object is no value of an index
  collection<Note>()(db, 'bad', { key: 'id', indexes: { x: { of: (note) => note.author } } });
  // @ts-expect-error: a date is not several values
  collection<Note>()(db, 'bad', { key: 'id', indexes: { x: { of: 'edited', multi: true } } });
  // @ts-expect-error: keys are strings
  collection<Note>()(db, 'bad', { key: 'id', newKey: () => 5 });
  // Each member of a union keeps its properties.
  type Shape = { id: string; kind: 'circle'; radius: number } | { id: string; kind: 'square'; side: number };
  const shapes = collection<Shape>()(db, 'shapes', { key: 'id', newKey: uuid7, indexes: { kind: 'kind' } });
  void shapes.insert({ kind: 'circle', radius: 1 });
  void shapes.insert({ id: 'own', kind: 'square', side: 1 });
  // @ts-expect-error: a square has no radius
  void shapes.insert({ kind: 'square', radius: 1 });
  // @ts-expect-error: the side is missing
  void shapes.insert({ kind: 'square' });
  shapes.find('kind', 'circle');
  // Documents with any other properties.
  const loose = collection<{ id: string; tags: string[]; [property: string]: unknown }>()(db, 'loose', {
    key: 'id',
    newKey: uuid7,
    indexes: { tags: { of: 'tags', multi: true } },
  });
  void loose.insert({ tags: ['lake'], color: 'red' });
  loose.find('tags', 'lake');
  // @ts-expect-error: a property of an unknown type is no key
  collection<{ id: string; [property: string]: unknown }>()(db, 'bad', { key: 'color' });
  // @ts-expect-error: the keys of a collection are arrays
  collection<Note>()(strings, 'bad', { key: 'id' });
  // @ts-expect-error: documents are no numbers
  collection<Note>()(numbers, 'bad', { key: 'id' });
}
