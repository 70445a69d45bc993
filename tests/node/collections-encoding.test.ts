// A collection takes the arguments of a call when it is called. Objects that change afterwards, while the call waits for the indexes, for
// a read or for its transaction, do not change the call.

import { describe, expect, test } from 'vitest';
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
