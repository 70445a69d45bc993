// Imports into stores with collections, and upgrades of such stores: the indexes are those of the documents. It does not matter what was
// imported over what, which tab imported it, or how far the import came.

import { describe, expect, test } from 'vitest';
import { ReservedKey } from '../../js/src/codec/reserved-key.ts';
import { collection, type Progress } from '../../js/src/collections.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Transaction } from '../../js/src/store/transaction.ts';
import { open as openSyncStore } from '../../js/src/synchronous.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { boundaries, bytesOf, chunks, newStore } from './support/exports.ts';
import { KeptDevices } from './support/kept-devices.ts';
import { documents, entriesFor, expectKept, ids, type Note, note, notesOf } from './support/notes.ts';
import { closedAfterTest, code, collect, openAsync, openSync, openTabs, plainExport } from './support/stores.ts';

type Db = Store<Key, unknown>;
type Bytes = Uint8Array<ArrayBuffer>;

const stream = (bytes: Bytes) => chunks(bytes, 65_536);
const exported = (db: Db, range = {}): Promise<Bytes> => bytesOf(db.export(range));

describe('an import over a store that has the collection', () => {
  test('leaves only the entries of the documents that are there then', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1, { tags: ['a'] }), note(2, { tags: ['b'] })]);
    const backup = await exported(db);
    await notes.update(1, { title: 'Other', tags: ['c'] });
    await notes.insert(note(3, { tags: ['c'] }));
    await db.import(stream(backup), { merge: true });
    expect(await ids(notes.find('tags', 'c'))).toStrictEqual([3]);
    expect(await ids(notes.find('tags', 'a'))).toStrictEqual([1]);
    expect(await notes.count('title')).toBe(3);
    // A value that no document has is free.
    await notes.insert(note(4, { title: 'Other' }));
    await expectKept(db, [
      note(1, { tags: ['a'] }),
      note(2, { tags: ['b'] }),
      note(3, { tags: ['c'] }),
      note(4, { title: 'Other' }),
    ]);
    expect(await notes.check()).toMatchObject({ ok: true, documents: 4 });
  });

  test('is noticed by each call, whichever is the first', async () => {
    const backup = await plainExport(documents([note(1, { title: 'Back', tags: ['x'], aliases: ['p'] }), note(2)]));
    const now = [note(1, { tags: ['a'] }), note(3)];
    const then = [note(1, { title: 'Back', tags: ['x'], aliases: ['p'] }), note(2), note(3)];
    const firsts: [(db: Db, notes: ReturnType<typeof notesOf>) => Promise<unknown>, unknown, Note[]?][] = [
      [(_, notes) => notes.find('tags', 'x').toArray(), [then[0]]],
      [(_, notes) => notes.keys('title').toArray(), [1, 2, 3]],
      [(_, notes) => notes.count('title'), 3],
      [(_, notes) => notes.first('alias', 'p'), then[0]],
      [(_, notes) => notes.count('tags', { prefix: '' }), 1],
      [(_, notes) => notes.insert(note(4, { title: 'note 1' })), 4, [...then, note(4, { title: 'note 1' })]],
      [(_, notes) => notes.put(note(1, { tags: ['y'] })), 1, [note(1, { tags: ['y'] }), note(2), note(3)]],
      [
        (_, notes) => notes.update(1, { tags: [] }),
        { ...then[0], tags: [] },
        [{ ...(then[0] as Note), tags: [] }, note(2), note(3)],
      ],
      [(_, notes) => notes.delete(1), true, [note(2), note(3)]],
      [(_, notes) => notes.clear(), undefined, []],
      [(_, notes) => notes.ready(), undefined],
      [(db, notes) => db.transaction((tx) => notes.in(tx).keys('tags', 'x').toArray()), [1]],
      [(db, notes) => db.transaction((tx) => notes.in(tx).delete(1)), true, [note(2), note(3)]],
    ];
    for (const [call, answer, left = then] of firsts) {
      const db = await openAsync();
      const notes = notesOf(db);
      await notes.insertMany(now);
      await db.import(stream(backup), { merge: true });
      expect(await call(db, notes), String(call)).toStrictEqual(answer);
      await notes.ready();
      await expectKept(db, left);
    }
  });

  test('is noticed by the other tab, which builds them or waits for them', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const [notes, theirs] = [notesOf(db), notesOf(other)];
    await notes.insertMany([note(1, { tags: ['a'] })]);
    await theirs.ready();
    await db.import(stream(await plainExport(documents([note(1, { tags: ['b'] }), note(2)]))), { merge: true });
    const [found, counted] = await Promise.all([ids(theirs.find('tags', 'b')), notes.count('tags')]);
    expect([found, counted]).toStrictEqual([[1], 1]);
    await theirs.insert(note(3));
    await expectKept(db, [note(1, { tags: ['b'] }), note(2), note(3)]);
  });

  test('does not take other code for the code that defined the indexes', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const notes = notesOf(db);
    await notes.insert(note(1));
    const anew = collection<Note>()(other, 'notes', { key: 'id', indexes: { tags: { of: 'tags', multi: true } } });
    await anew.ready();
    await db.import(stream(await plainExport(documents([note(2, { tags: ['x'] })]))), { merge: true });
    await expect(notes.count('title')).rejects.toThrow(code('VARVE_VERSION'));
    await expect(notes.insert(note(3))).rejects.toThrow(code('VARVE_VERSION'));
    expect(await ids(anew.find('tags', 'x'))).toStrictEqual([2]);
  });

  test('is followed by a live query', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1, { tags: ['a'] }));
    const live = db.live((view) => notes.in(view).keys('tags', 'b').toArray(), { prefix: ['notes'] });
    const errors: unknown[] = [];
    const stop = live.subscribe(
      () => undefined,
      (error) => errors.push(error),
    );
    await expect.poll(() => live.value).toStrictEqual([]);
    await db.import(stream(await plainExport(documents([note(1, { tags: ['b'] })]))), { merge: true });
    await expect.poll(() => live.value).toStrictEqual([1]);
    expect(errors).toStrictEqual([]);
    stop();
  });

  test('a snapshot from between import and use is refused for its indexes, and a new one is right', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1, { tags: ['a'] }));
    await db.import(stream(await plainExport(documents([note(1, { tags: ['b'] })]))), { merge: true });
    await using between = db.snapshot();
    await expect(notes.in(between).count('tags', 'a')).rejects.toThrow(code('VARVE_RETRY'));
    await using after = db.snapshot();
    expect(await notes.in(after).count('tags', 'b')).toBe(1);
  });

  test('that is interrupted leaves the indexes right, then and after it began again', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    const local = Array.from({ length: 60 }, (_, i) => note(i, { tags: ['local'], title: `Local ${i}` }));
    await notes.insertMany(local);
    const body = 'x'.repeat(20_000);
    const theirs = Array.from({ length: 40 }, (_, i) => ({ ...note(i, { tags: ['back'], title: `Back ${i}` }), body }));
    const backup = await plainExport(documents(theirs));
    const cut = boundaries(backup)[2] as number;
    await expect(db.import(stream(backup.slice(0, cut)), { merge: true })).rejects.toThrow(code('VARVE_CORRUPT'));
    const restored = (await ids(notes.find('tags', 'back'))).length;
    expect(restored).toBeGreaterThan(0);
    expect(restored).toBeLessThan(40);
    expect(await notes.count('tags', 'local')).toBe(60 - restored);
    expect(await notes.check()).toMatchObject({ ok: true, documents: 60, differences: [] });
    // The indexes were built again, and that is a write.
    const report = await db.import(stream(backup), { merge: true });
    expect(report.resumedAt).toBe(0);
    expect([await notes.count('tags', 'back'), await notes.count('tags', 'local')]).toStrictEqual([40, 20]);
    expect(await notes.check()).toMatchObject({ ok: true, documents: 60, differences: [] });
  });

  test('while others write leaves every document with its entries', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const [notes, theirs] = [notesOf(db), notesOf(other)];
    const body = 'x'.repeat(20_000);
    const backup = await plainExport(
      documents(Array.from({ length: 80 }, (_, i) => ({ ...note(i, { tags: ['back'] }), body }))),
    );
    let isOver = false;
    const importing = db.import(stream(backup), { merge: true }).finally(() => {
      isOver = true;
    });
    for (let i = 0; !isOver || i < 20; i++) {
      const id = (i * 7) % 100;
      await theirs.put(note(id, { tags: [`put ${i % 3}`] }));
      if (i % 3 === 0) await notes.update(id, { tags: ['updated'] });
      if (i % 5 === 0) await theirs.delete(id);
      const all = await theirs.find('tags', 'back').toArray();
      expect(all.every(({ tags }) => tags.includes('back'))).toBe(true);
    }
    await importing;
    const all = await notes.find().toArray();
    await expectKept(db, all);
    expect(await theirs.check()).toMatchObject({ ok: true, differences: [] });
  });

  test('while the collection is made for the first time', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const body = 'x'.repeat(20_000);
    const all = Array.from({ length: 60 }, (_, i) => ({ ...note(i, { tags: ['back'] }), body }));
    const backup = await plainExport(documents(all));
    const importing = db.import(stream(backup));
    const found: number[] = [];
    const theirs = notesOf(other);
    for (let isOver = false; !isOver; ) {
      isOver = await Promise.race([importing.then(() => true), theirs.ready().then(() => false)]);
      found.push(await theirs.count('tags', 'back'));
    }
    expect(found.at(-1)).toBe(60);
    await expectKept(db, all);
  });
});

describe('an import and another tab, in turns', () => {
  /** Tabs. The first tab delays its next frame until the result of the last function resolves. */
  async function turns(): Promise<[Db, Db, (meanwhile: () => Promise<unknown>) => void]> {
    let next: (() => Promise<unknown>) | undefined;
    const [db, other] = (await openTabs(2, () => {
      const meanwhile = next;
      next = undefined;
      return meanwhile?.();
    })) as [Db, Db];
    const meanwhile = (wait: () => Promise<unknown>): void => {
      next = wait;
    };
    return [db, other, meanwhile];
  }

  /** A stream that calls a function when all of it has been read, before its blocks are applied. */
  async function* telling(bytes: Bytes, at: number, tell: () => void): AsyncGenerator<Uint8Array, void, undefined> {
    yield bytes.slice(0, at);
    tell();
    yield bytes.slice(at);
  }

  test.each([1, 2, 3, 4])('beside a reindex %i frames before the block', async (frames) => {
    const [db, other, meanwhile] = await turns();
    const [notes, theirs] = [notesOf(db), notesOf(other)];
    await notes.insert(note(1, { tags: ['a'] }));
    await theirs.ready();
    const backup = await plainExport(documents([note(1, { tags: ['b'] })]));
    let left = frames;
    const wait = (): Promise<unknown> => {
      if (--left > 0) meanwhile(wait);
      return left === 0 ? theirs.reindex() : Promise.resolve();
    };
    await db.import(
      telling(backup, 72, () => meanwhile(wait)),
      { merge: true },
    );
    expect(await ids(theirs.find('tags', 'b'))).toStrictEqual([1]);
    await expectKept(db, [note(1, { tags: ['b'] })]);
  });

  test.each([1, 2, 3, 4])('which makes the collection %i frames before the block', async (frames) => {
    const [db, other, meanwhile] = await turns();
    const theirs = notesOf(other);
    const backup = await plainExport(documents([note(1, { tags: ['b'] })]));
    let left = frames;
    const wait = (): Promise<unknown> => {
      if (--left > 0) meanwhile(wait);
      return left === 0 ? theirs.ready() : Promise.resolve();
    };
    await db.import(telling(backup, 72, () => meanwhile(wait)));
    await theirs.ready();
    expect(await ids(theirs.find('tags', 'b'))).toStrictEqual([1]);
    await expectKept(db, [note(1, { tags: ['b'] })]);
  });

  test('which is building them: ready resolves when those of what was imported are there', async () => {
    const [db, other, meanwhile] = await turns();
    const all = Array.from({ length: 600 }, (_, i) => note(i, { tags: ['a'] }));
    await collection<Note>()(db, 'notes', { key: 'id' }).insertMany(all);
    const backup = await plainExport(documents([note(1, { tags: ['b'] }), note(1000)]));
    let pages = 0;
    const onProgress = (): void => {
      if (++pages === 2) meanwhile(() => other.import(stream(backup), { merge: true }));
    };
    await notesOf(db).ready({ onProgress });
    await expectKept(db, [note(0, { tags: ['a'] }), note(1, { tags: ['b'] }), ...all.slice(2), note(1000)]);
  });

  test('do not disturb transactions that others write meanwhile', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const [notes, theirs] = [notesOf(db), notesOf(other)];
    await notes.insertMany([note(1), note(2)]);
    let runs = 0;
    await db.transaction(async (tx) => {
      runs++;
      const found = await notes.in(tx).find('tags', 'none').toArray();
      await theirs.put(note(2, { title: 'Other' }));
      await notes.in(tx).update(1, { title: `Found ${found.length}` });
    });
    expect(runs).toBe(1);
  });
});

describe('an import into an empty store', () => {
  test('of documents alone has the indexes built at the first use, and reports the progress', async () => {
    const db = await openAsync();
    const all = Array.from({ length: 300 }, (_, i) => note(i, { tags: ['a'] }));
    await db.import(stream(await plainExport(documents(all))));
    const notes = notesOf(db);
    const heard: Progress[] = [];
    await notes.ready({ onProgress: (progress) => heard.push(progress) });
    expect(heard.at(-1)).toStrictEqual({ done: 300, total: 300 });
    await expectKept(db, all);
  });

  test('that was emptied for it under an open collection', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const [notes, theirs] = [notesOf(db), notesOf(other)];
    await notes.insertMany([note(1), note(2)]);
    await theirs.ready();
    const backup = await exported(db);
    await notes.delete(2);
    await db.clear();
    await db.import(stream(backup));
    expect(await ids(theirs.find('title'))).toStrictEqual([1, 2]);
    await notes.insert(note(3));
    await other.transaction((tx) => theirs.in(tx).insert(note(4)));
    await expectKept(db, [note(1), note(2), note(3), note(4)]);
  });

  test('that was emptied while one of its tabs did not know the last generation', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const [notes, theirs] = [notesOf(db), notesOf(other)];
    await notes.insertMany([note(1), note(2)]);
    await theirs.ready();
    const backup = await exported(db);
    await notes.reindex();
    await db.clear();
    await db.import(stream(backup));
    expect(await theirs.count('title')).toBe(2);
    await theirs.put(note(2, { tags: ['a'] }));
    await expectKept(db, [note(1), note(2, { tags: ['a'] })]);
  });

  test('of an older export, with entries in it that are wrong, builds them anew', async () => {
    const wrong: [Key, unknown][] = [
      ...documents([note(1, { tags: ['b'] }), note(2)]),
      ...entriesFor([note(1, { tags: ['a'] })]).filter(([key]) => (key as string[])[1] === 'by'),
      [['notes', 'def'], { generation: 3, version: 1, indexes: kinds(), building: [], done: 0, total: 0 }],
      [['notes', 'old', 2], true],
    ];
    const backup = await plainExport(wrong);
    const db = await openAsync();
    await db.import(stream(backup));
    const notes = notesOf(db);
    expect(await ids(notes.find('tags'))).toStrictEqual([1]);
    await expectKept(db, [note(1, { tags: ['b'] }), note(2)]);
    // An import over existing entries: its entries alone change nothing.
    await db.import(stream(await plainExport(wrong.filter(([key]) => (key as string[])[1] !== 'doc'))), {
      merge: true,
    });
    await expectKept(db, [note(1, { tags: ['b'] }), note(2)]);
    await notes.put(note(2, { tags: ['c'] }));
    await db.import(stream(backup), { merge: true });
    await notes.ready();
    await expectKept(db, [note(1, { tags: ['b'] }), note(2)]);
  });
});

/** The kinds of the indexes of `notesOf`, as the store keeps them. */
function kinds(): Record<string, string> {
  const kind = (of: unknown, multi: boolean, unique: boolean): string => JSON.stringify({ of, multi, unique });
  return {
    edited: kind('edited', false, false),
    tags: kind('tags', true, false),
    title: kind({ version: 1 }, false, true),
    place: kind(['folder', 'edited'], false, false),
    alias: kind('aliases', true, true),
  };
}

test('an import by the synchronous API, also two at once, is noticed when the collection is opened again', async () => {
  const storage = new KeptDevices();
  const reopened = (): Promise<Db> => newStore({ storage });
  let db = await reopened();
  await notesOf(db).insertMany([note(1, { tags: ['a'] }), note(2, { tags: ['a'] })]);
  const whole = await exported(db);
  await db.close();
  const sync = await openSyncStore<Key, unknown>('portable', { storage, wasm, memoryBytes: 2 ** 20 });
  const backups = await Promise.all([3, 4].map((id) => plainExport(documents([note(1, { tags: ['b'] }), note(id)]))));
  await Promise.all(backups.map((backup) => sync.import(stream(backup), { merge: true })));
  expect((await bytesOf(sync.export({ prefix: ['notes'] }))).length).toBeLessThan(2 * whole.length);
  await sync.close();
  db = await reopened();
  const notes = notesOf(db);
  expect(await ids(notes.find('tags', 'a'))).toStrictEqual([2]);
  await expectKept(db, [note(1, { tags: ['b'] }), note(2, { tags: ['a'] }), note(3), note(4)]);
  await db.close();
});

// Story: the guide says that documents may be changed in the upgrade of `open`, but that marked nothing as out of date. The indexes kept
// the values from before: a document was not found by its new title, and its former title, which no document had, was taken.
describe.each(['asynchronous', 'synchronous'])('an upgrade of the %s store', (kind) => {
  const former = [note(1, { title: 'Mud' }), note(2, { title: 'Clay', tags: ['a'] })];
  type Write = (tx: Pick<Transaction<Key, unknown>, 'set' | 'deleteRange'>) => void;

  /** A store with two collections, after an upgrade that makes these writes. */
  async function upgraded(upgrade: Write): Promise<Db> {
    const storage = new KeptDevices();
    const first = await newStore({ storage, version: 1 });
    await notesOf(first).insertMany(former);
    await notesOf(first, 'others').insert(note(1));
    await first.close();
    const options = { storage, wasm, memoryBytes: 2 ** 20, version: 2, upgrade };
    if (kind === 'synchronous') await (await openSyncStore<Key, unknown>('portable', options)).close();
    return closedAfterTest(await newStore({ storage, version: 2, upgrade }));
  }

  const isMarked = (db: Db, name: string): Promise<boolean> =>
    db.has(new ReservedKey(`over "${name}" 1 by import`) as unknown as Key);

  test('that changes documents has their indexes built again, and no others', async () => {
    const now = [note(1, { title: 'Silt' }), note(2, { title: 'Clay', tags: ['b'] })];
    const db = await upgraded((tx) => {
      for (const one of now) tx.set(['notes', 'doc', one.id], one);
      tx.set('mine', 1);
    });
    expect([await isMarked(db, 'notes'), await isMarked(db, 'others')]).toStrictEqual([true, false]);
    const notes = notesOf(db);
    expect(await notes.first('title', 'silt')).toStrictEqual(now[0]);
    expect(await ids(notes.find('tags', { prefix: '' }))).toStrictEqual([2]);
    await notes.insert(note(3, { title: 'MUD' }));
    expect(await notes.check()).toMatchObject({ ok: true, documents: 3 });
    await expectKept(db, [...now, note(3, { title: 'MUD' })]);
  });

  test('that deletes documents, or entries, has them built again as well', async () => {
    const range = { prefix: ['notes', 'doc'], gte: ['notes', 'doc', 2] };
    const without = await upgraded((tx) => tx.deleteRange(range));
    await notesOf(without).insert(note(3, { title: 'Clay' }));
    await expectKept(without, [former[0] as Note, note(3, { title: 'Clay' })]);
    const bare = await upgraded((tx) => tx.deleteRange({ prefix: ['notes', 'by'] }));
    expect(await notesOf(bare).count('title')).toBe(2);
    await expectKept(bare, former);
  });

  test('that writes neither leaves them as they are', async () => {
    const db = await upgraded((tx) => tx.set(['notes', 'mine'], 1));
    expect(await isMarked(db, 'notes')).toBe(false);
    await expectKept(db, former);
  });
});

describe('an export', () => {
  const all = Array.from({ length: 500 }, (_, i) =>
    note(i, { tags: ['a', `tag ${i}`], folder: 'work', aliases: [`alias ${i}`] }),
  );

  async function filled(): Promise<Db> {
    const db = await openAsync();
    await notesOf(db).insertMany(all);
    await notesOf(db, 'others').insert(note(1));
    await db.setMany([
      ['a key', 1],
      [['notes'], 2],
      [['notes', 'doc'], 3],
      [['notes', 'mine'], 4],
      [['zz'], 5],
    ]);
    return db;
  }

  const own: [Key, unknown][] = [
    ['a key', 1],
    [['notes'], 2],
    [['notes', 'doc'], 3],
    ...documents(all),
    [['notes', 'mine'], 4],
    [['others', 'doc', 1], note(1)],
    [['zz'], 5],
  ];

  test('has no entries of indexes, by whichever API', async () => {
    const db = await filled();
    const backup = await exported(db);
    expect(backup.length).toBeLessThan(JSON.stringify(all).length);
    const sync = await openSync();
    const report = await sync.import(stream(backup));
    expect(report.entries).toBe(own.length);
    expect([...sync]).toStrictEqual(own);
    const target = await openAsync();
    await target.import(sync.export());
    expect(await collect(target)).toStrictEqual(own);
  });

  test('of a range has none, either', async () => {
    const db = await filled();
    const target = await openAsync();
    await target.import(db.export({ gte: ['notes', 'by', 'tags'], lt: ['notes', 'doc', 3] }));
    expect(await collect(target)).toStrictEqual([[['notes', 'doc'], 3], ...documents(all.slice(0, 3))]);
    const entries = await openAsync();
    expect(await entries.import(db.export({ prefix: ['notes', 'by'] }))).toMatchObject({ entries: 0 });
    const some = await openAsync();
    await some.import(db.export({ gte: ['notes', 'doc', 498] }));
    expect(await collect(some)).toStrictEqual(own.slice(-5));
  });
});
