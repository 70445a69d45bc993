// A collection takes the arguments of a call when it is called. Objects that change afterwards, while the call waits for the indexes, for
// a read or for its transaction, do not change the call. And what the store cannot encode: it is refused before anything is written.

import { describe, expect, test, vi } from 'vitest';
import { json } from '../../js/src/codec/values.ts';
import { collection } from '../../js/src/collections.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { expectKept, kept, type Note, note, notesOf } from './support/notes.ts';
import { code, openAsync } from './support/stores.ts';

type Db = Store<Key, unknown>;
type Loose = { -readonly [P in keyof Note]: Note[P] };

/** A note that shares no object with any other note. */
function loose(id: number): Loose {
  return note(id, { title: `Title ${id}`, tags: [`tag ${id}`], edited: new Date(id), aliases: [`alias ${id}`] });
}

/** Changes everything in a note, its arrays and its date in place. */
function spoil(one: Loose): void {
  one.id = 999;
  one.title = 'Spoilt';
  (one.tags as string[])[0] = 'spoilt';
  (one.aliases as string[])[0] = 'spoilt';
  one.edited.setTime(999);
}

const bare = (db: Db) => collection<Note>()(db, 'bare', { key: 'id' });

describe.each([
  ['before the indexes are ready', false],
  ['when they are ready', true],
])('%s', (_, isReady) => {
  async function opened() {
    const db = await openAsync();
    const notes = notesOf(db);
    const plain = bare(db);
    if (isReady) await Promise.all([notes.ready(), plain.ready()]);
    return { db, notes, plain };
  }

  test('put takes the document as it is at the call', async () => {
    const { db, notes } = await opened();
    const one = { id: 1, title: 'a', tags: [], edited: new Date(0) };
    const first = notes.put(one);
    one.id = 2;
    one.title = 'b';
    const second = notes.put(one);
    one.title = 'c';
    expect(await Promise.all([first, second])).toStrictEqual([1, 2]);
    await expectKept(db, [
      { ...one, id: 1, title: 'a' },
      { ...one, id: 2, title: 'b' },
    ]);
  });

  test.each(['insert', 'put'] as const)('%s takes all that the document has', async (method) => {
    const { db, notes, plain } = await opened();
    const [one, other] = [loose(1), loose(1)];
    const written = [notes[method](one), plain[method](other)];
    spoil(one);
    spoil(other);
    expect(await Promise.all(written)).toStrictEqual([1, 1]);
    await expectKept(db, [loose(1)]);
    expect(await plain.find().toArray()).toStrictEqual([loose(1)]);
  });

  test('insertMany takes them all, and the list', async () => {
    const { db, notes } = await opened();
    const list = [loose(1), loose(2)];
    const written = notes.insertMany(list);
    for (const one of list.splice(0)) spoil(one);
    expect(await written).toStrictEqual([1, 2]);
    await expectKept(db, [loose(1), loose(2)]);
  });

  // Story: a write read its options again when it was sent, after its wait for the indexes, its turn and its read.
  test('every write takes its options', async () => {
    const { notes, plain } = await opened();
    const options = { durability: 'strict' };
    const given = options as { durability: 'strict' };
    const written = [notes.insert(loose(1), given), notes.put(loose(2), given), plain.put(loose(3), given)];
    options.durability = 'of a later call';
    expect(await Promise.all(written)).toStrictEqual([1, 2, 3]);
  });

  test('update takes the properties that it is given', async () => {
    const { db, notes } = await opened();
    await notes.insert(loose(1));
    const again = notesOf(db);
    const change = { tags: ['x'], edited: new Date(5), folder: undefined };
    const updated = again.update(1, change);
    change.tags[0] = 'spoilt';
    change.edited.setTime(999);
    const expected = { ...loose(1), tags: ['x'], edited: new Date(5), folder: undefined };
    expect(await updated).toStrictEqual(expected);
    await expectKept(db, [expected]);
  });

  test('keys and bounds are taken as well', async () => {
    const db = await openAsync();
    const open = () => collection<{ at: Date; n: number }>()(db, 'by date', { key: 'at', indexes: { at: 'at' } });
    await open().insertMany([1, 2, 3].map((n) => ({ at: new Date(n), n })));
    const dates = open();
    if (isReady) await dates.ready();
    const key = new Date(2);
    const calls = [dates.get(key), dates.getMany([key]), dates.has(key), dates.update(key, { n: 20 })];
    const found = dates.find('at', { gte: key });
    const counted = dates.count({ lt: key });
    const gone = dates.delete(key);
    key.setTime(777);
    const answers = await Promise.all([...calls, gone, counted]);
    expect(answers.slice(0, 3)).toStrictEqual([{ at: new Date(2), n: 2 }, [{ at: new Date(2), n: 2 }], true]);
    expect(answers.slice(4)).toStrictEqual([true, 1]);
    expect((await found.toArray()).map(({ n }) => n).at(-1)).toBe(3);
  });

  test('a document that cannot be stored is refused by the promise, and nothing is written', async () => {
    const { db, notes, plain } = await opened();
    const strange = { ...loose(1), title: 'x', body: () => undefined };
    for (const target of [notes, plain]) {
      await expect(target.put(strange)).rejects.toThrow(code('VARVE_INVALID_VALUE'));
      await expect(target.insert(strange)).rejects.toThrow(code('VARVE_INVALID_VALUE'));
    }
    await expect(notes.put({ ...loose(1), edited: new Date(Number.NaN) })).rejects.toThrow(code('VARVE_INVALID_KEY'));
    expect(await kept(db)).toStrictEqual([]);
  });
});

test.each(['insert', 'put'] as const)('%s in a transaction takes the document as it is at the call', async (method) => {
  const db = await openAsync();
  const notes = notesOf(db);
  await notes.ready();
  await db.transaction(async (tx) => {
    const one = loose(1);
    const first = notes.in(tx)[method](one);
    spoil(one);
    const second = notes.in(tx)[method](loose(2));
    expect(await Promise.all([first, second])).toStrictEqual([1, 2]);
  });
  await db.transaction(async (tx) => {
    const change = { tags: ['x'] };
    const updated = notes.in(tx).update(1, change);
    change.tags[0] = 'spoilt';
    await updated;
  });
  await expectKept(db, [{ ...loose(1), tags: ['x'] }, loose(2)]);
});

test('entries follow from the stored document, whatever a getter returns', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  let reads = 0;
  const shifty = {
    ...loose(1),
    get title() {
      return `Title of read ${reads++}`;
    },
  };
  await notes.put(shifty);
  await notes.insert({
    ...loose(2),
    get folder() {
      return `read ${reads++}`;
    },
  });
  await expectKept(db, await notes.find().toArray());
});

test('a put that is tried again writes the document of the call', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  await notes.insert(loose(1));
  const one = loose(1);
  one.title = 'First';
  const puts = [notes.put(one)];
  spoil(one);
  puts.push(notes.put({ ...loose(1), title: 'Second' }), notes.put({ ...loose(1), title: 'Third' }));
  await Promise.all(puts);
  const title = (await notes.get(1))?.title ?? '';
  expect(['First', 'Second', 'Third']).toContain(title);
  await expectKept(db, [{ ...loose(1), title }]);
});

test('the type of a key is read from the key itself, not from its properties', async () => {
  const db = await openAsync();
  const things = collection<{ id: Key; n: number }>()(db, 'things', { key: 'id' });
  class Liar extends Date {
    override getTime(): number {
      return 5;
    }
  }
  await things.put({ id: [1], n: 1 });
  expect(await things.get(new Liar(1))).toBeUndefined();
  const revoked = Proxy.revocable([1], {});
  revoked.revoke();
  const detached = new Uint8Array(8);
  structuredClone(detached, { transfer: [detached.buffer] });
  const fake = { [Symbol.toStringTag]: 'Date', getTime: () => 1 };
  for (const key of [revoked.proxy, detached, fake, [revoked.proxy]] as Key[]) {
    await expect(things.get(key)).rejects.toThrow(code('VARVE_INVALID_KEY'));
    await expect(things.delete(key)).rejects.toThrow(code('VARVE_INVALID_KEY'));
    expect(() => things.find({ gte: key })).toThrow(code('VARVE_INVALID_KEY'));
  }
  expect(await things.get([1])).toStrictEqual({ id: [1], n: 1 });
});

interface Page {
  readonly id: number;
  readonly url: string;
}

const pagesOf = (db: Db) =>
  collection<Page>()(db, 'pages', { key: 'id', indexes: { url: 'url', slug: { of: 'url', unique: true } } });

// Story: indexes took strings that the keys of the store refuse. In a transaction, a call with such a string rejected, but it had written
// the document. The transaction could commit that, and then check, reindex and delete threw. When an index was added to such documents,
// all calls rejected with an error that named neither the index nor the document, and the check found nothing.
describe.each([
  ['too long', 'x'.repeat(65_537)],
  ['too long together with its names', 'x'.repeat(65_530)],
  ['no text', 'a\ud800'],
])('an index value that is %s', (_, url) => {
  const named = "The value for the index 'url' of 'pages' in the document number:2 makes no key: ";

  test('is refused by every write, and nothing is written, also in a transaction that goes on', async () => {
    const db = await openAsync();
    const pages = pagesOf(db);
    await pages.insertMany([
      { id: 1, url: 'a' },
      { id: 2, url: 'b' },
    ]);
    const before = await kept(db, 'pages');
    await expect(pages.insert({ id: 2, url })).rejects.toThrow(named);
    await expect(pages.put({ id: 2, url })).rejects.toThrow(named);
    await expect(pages.update(2, { url })).rejects.toThrow(named);
    await db.transaction(async (tx) => {
      const within = pages.in(tx);
      await expect(within.put({ id: 2, url })).rejects.toThrow(named);
      await expect(within.update(2, { url })).rejects.toThrow(code('VARVE_INVALID_KEY'));
      await expect(within.insert({ id: 3, url })).rejects.toThrow(code('VARVE_INVALID_KEY'));
      const both = [
        { id: 4, url: 'd' },
        { id: 5, url },
      ];
      await expect(within.insertMany(both)).rejects.toThrow(code('VARVE_INVALID_KEY'));
      tx.set('noted', true);
    });
    expect(await db.get('noted')).toBe(true);
    expect(await kept(db, 'pages')).toStrictEqual(before);
  });

  test('of a stored document is named when indexes are built, and listed by the check', async () => {
    const db = await openAsync();
    const bare = collection<Page>()(db, 'pages', { key: 'id' });
    await bare.insertMany([
      { id: 1, url: 'a' },
      { id: 2, url },
      { id: 3, url },
    ]);
    const pages = pagesOf(db);
    await expect(pages.ready()).rejects.toThrow(named);
    const { ok, differences } = await pages.check();
    const error = code('VARVE_INVALID_KEY');
    expect([ok, differences]).toStrictEqual([
      false,
      [
        { kind: 'refused', key: 2, error },
        { kind: 'refused', key: 3, error },
      ],
    ]);
    await db.set(pages.keyOf(2), { id: 2, url: 'b' });
    await db.delete(pages.keyOf(3));
    expect(await pages.keys('url').toArray()).toStrictEqual([1, 2]);
    expect(await pages.check()).toMatchObject({ ok: true, documents: 2, entries: 4 });
  });

  test('of a document that was written beside the collection lets it be replaced and deleted', async () => {
    const db = await openAsync();
    const pages = pagesOf(db);
    await pages.insert({ id: 1, url: 'a' });
    for (const id of [2, 3, 4, 5]) await db.set(pages.keyOf(id), { id, url });
    // Entries that name a document which cannot be.
    await db.set(['pages', 'by', 'slug', 'z'], url);
    await db.set(['pages', 'by', 'slug', 'a'], url);
    expect((await pages.check()).differences.map(({ kind, key }) => [kind, key])).toStrictEqual([
      ...[2, 3, 4, 5].map((id) => ['refused', id]),
      ['missing', 1],
      ['stray', url],
      ['stray', url],
    ]);
    await db.set(['pages', 'by', 'slug', 'a'], 1);
    await db.delete(['pages', 'by', 'slug', 'z']);
    expect(await pages.delete(2)).toBe(true);
    await pages.put({ id: 3, url: 'c' });
    await db.transaction(async (tx) => {
      expect(await pages.in(tx).delete(4)).toBe(true);
      await pages.in(tx).update(5, { url: 'e' });
    });
    expect(await pages.keys('slug').toArray()).toStrictEqual([1, 3, 5]);
    expect(await pages.check()).toMatchObject({ ok: true, documents: 3 });
  });
});

// Story: the end of a range was its value with more behind it. So the search for a value of nearly the greatest length was refused.
test('the longest values are found', async () => {
  const db = await openAsync();
  const pages = pagesOf(db);
  const url = 'x'.repeat(65_505);
  const [short, long] = [
    { id: 1, url: 'w' },
    { id: 2, url },
  ] as const;
  await pages.insertMany([short, long]);
  await expect(pages.insert({ id: 3, url: `${url}x` })).rejects.toThrow(code('VARVE_INVALID_KEY'));
  for (const index of ['url', 'slug'] as const) {
    expect(await pages.find(index, url).toArray()).toStrictEqual([long]);
    expect(await pages.find(index, { lte: url }).toArray()).toStrictEqual([short, long]);
    expect(await pages.find(index, { gt: url }).toArray()).toStrictEqual([]);
    expect(await pages.find(index, { after: long }).toArray()).toStrictEqual([]);
    expect(await pages.find(index, { after: long, reverse: true }).toArray()).toStrictEqual([short]);
    expect(await pages.count(index, url)).toBe(1);
    // Story: the end of a prefix was made by one call with all of its characters, which broke with a RangeError.
    await expect(pages.count(index, { prefix: 'x'.repeat(200_000) })).rejects.toThrow(code('VARVE_INVALID_KEY'));
  }
});

// Story: entries and the progress of a build went through the codec of the documents. With `json` a key that was a date came back as a
// string. So a unique index found no document, and a build read its first page for ever.
test.each<[string, (n: number) => Key]>([
  ['dates', (n) => new Date(n)],
  ['bigints', (n) => BigInt(n)],
  ['bytes', (n) => Uint8Array.of(n >> 8, n)],
])('keys that are %s stay what they are, whatever the codec of the documents', async (_, keyOf) => {
  const db = (await openAsync()).at<Key, unknown>([], { values: json });
  interface Day {
    readonly n: number;
    readonly name: string;
  }
  const key = ({ n }: Day): Key => keyOf(n);
  const all = Array.from({ length: 300 }, (_, n) => ({ n, name: `day ${n}` }));
  await collection<Day>()(db, 'days', { key }).insertMany(all);
  const days = collection<Day>()(db, 'days', { key, indexes: { n: 'n', name: { of: 'name', unique: true } } });
  await days.ready();
  expect(await days.first('name', 'day 7')).toStrictEqual(all[7]);
  expect(await days.keys('name', 'day 7').toArray()).toStrictEqual([keyOf(7)]);
  await expect(days.insert({ n: 1000, name: 'day 7' })).rejects.toThrow(code('VARVE_CONFLICT'));
  await days.update(keyOf(7), { name: 'seventh' });
  await db.transaction(async (tx) => {
    await days.in(tx).insert({ n: 1000, name: 'day 7' });
    expect(await days.in(tx).first('name', 'day 7')).toStrictEqual({ n: 1000, name: 'day 7' });
  });
  expect(await days.check()).toMatchObject({ ok: true, documents: 301, entries: 602 });
});

// Story: an indexed read asks in the same turn whether its generation is over. When that question failed, nobody closed the snapshot
// that the read had opened.
test('a read whose check fails leaves no snapshot open', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  await notes.insert(note(1, { tags: ['a'] }));
  vi.spyOn(db, 'has').mockRejectedValueOnce(new Error('unreadable'));
  await expect(notes.find('tags', 'a').toArray()).rejects.toThrow('unreadable');
  await expect.poll(async () => (await db.stats()).snapshots).toBe(0);
  expect(await notes.find('tags', 'a').toArray()).toHaveLength(1);
});
