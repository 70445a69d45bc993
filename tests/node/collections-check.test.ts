// Indexes that cannot be as they are defined, or are not as defined: what the check reports about them, and how they are rebuilt.

import { describe, expect, test } from 'vitest';
import { collection, type Progress } from '../../js/src/collections.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { chunks } from './support/exports.ts';
import { documents, expectKept, ids, kept, type Note, note, notesOf } from './support/notes.ts';
import { code, collect, openAsync, openTabs, plainExport } from './support/stores.ts';

type Db = Store<Key, unknown>;

const stream = (bytes: Uint8Array) => chunks(bytes, 65_536);

describe('unique values that two documents have after an import', () => {
  async function merged() {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1, { title: 'Same', tags: ['a'] }), note(5)]);
    const theirs = [
      note(2, { title: 'SAME' }),
      note(3, { title: 'same' }),
      note(4, { aliases: ['p'] }),
      note(6, { aliases: ['p'] }),
    ];
    await db.import(stream(await plainExport(documents(theirs))), { merge: true });
    return {
      db,
      notes,
      all: [note(1, { title: 'Same', tags: ['a'] }), ...theirs.slice(0, 3), note(5), note(6, { aliases: ['p'] })],
    };
  }

  test('are refused, listed, and right again after they are corrected', async () => {
    const { db, notes, all } = await merged();
    await expect(notes.count('title')).rejects.toThrow(code('VARVE_CONFLICT'));
    await expect(notes.ready()).rejects.toThrow('The documents 1 and 2 of \'notes\' both have the value "same"');
    // Nothing is lost.
    expect(await collect(db.values({ prefix: ['notes', 'doc'] }))).toStrictEqual(all);
    const { ok, documents: count, differences } = await notes.check();
    expect([ok, count]).toStrictEqual([false, 6]);
    expect(differences).toStrictEqual([
      { kind: 'conflict', index: 'title', value: 'same', key: 2, other: 1 },
      { kind: 'conflict', index: 'title', value: 'same', key: 3, other: 1 },
      { kind: 'conflict', index: 'alias', value: 'p', key: 6, other: 4 },
    ]);
    for (const { key, value } of differences) {
      const place = notes.keyOf(key);
      const document = (await db.get(place)) as Note;
      const change = value === 'p' ? { aliases: [] } : { title: `${document.title} (${key})` };
      await db.set(place, { ...document, ...change });
    }
    await notes.reindex();
    expect(await notes.check()).toMatchObject({ ok: true, documents: 6, differences: [] });
    expect(await notes.first('title', 'same (3)')).toMatchObject({ id: 3 });
    await expectKept(db, await notes.find().toArray());
  });

  test('are right again also without reindex, whichever of the two is corrected', async () => {
    const { db, notes } = await merged();
    await expect(notes.ready()).rejects.toThrow(code('VARVE_CONFLICT'));
    await db.set(notes.keyOf(1), note(1, { title: 'First' }));
    await expect(notes.ready()).rejects.toThrow(code('VARVE_CONFLICT'));
    await db.delete(notes.keyOf(2));
    await db.delete(notes.keyOf(4));
    expect(await ids(notes.find('title'))).toStrictEqual([1, 5, 6, 3]);
    await expectKept(db, await notes.find().toArray());
  });
});

describe('reindex', () => {
  const all = Array.from({ length: 600 }, (_, i) => note(i, { tags: ['a'] }));

  test('builds every index anew while tabs use it, and reports its progress', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const [notes, theirs] = [notesOf(db), notesOf(other)];
    await notes.insertMany(all);
    await theirs.ready();
    await db.batch().delete(['notes', 'by', 'tags', 'a', 3]).set(['notes', 'by', 'tags', 'b', 4], true).commit();
    const heard: number[] = [];
    const [, counted] = await Promise.all([
      notes.reindex({ onProgress: ({ done }) => heard.push(done) }),
      theirs.insert(note(1000)).then(() => theirs.count('title')),
    ]);
    expect(counted).toBe(601);
    expect(heard.at(-1)).toBeGreaterThanOrEqual(600);
    await expectKept(db, [...all, note(1000)]);
  });

  test('ends with its signal, and the next use continues it', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany(all);
    const aborter = new AbortController();
    const heard: number[] = [];
    const onProgress = ({ done }: Progress): void => {
      heard.push(done);
      aborter.abort();
    };
    await expect(notes.reindex({ onProgress, signal: aborter.signal })).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
    expect(heard).toStrictEqual([250]);
    await expect(notes.reindex({ signal: aborter.signal })).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
    expect(await notes.count('tags', 'a')).toBe(600);
    await expectKept(db, all);
  });

  test('continues for other callers that wait', async () => {
    const db = await openAsync();
    await collection<Note>()(db, 'notes', { key: 'id' }).insertMany(all);
    const notes = notesOf(db);
    const aborter = new AbortController();
    const first = notes.ready({ onProgress: () => aborter.abort(), signal: aborter.signal });
    const counted = notes.count('tags');
    await expect(first).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    expect(await counted).toBe(600);
  });
});

describe('check', () => {
  test('reports which entries are missing, wrong, or of no document, and of which documents', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1, { tags: ['a'] }), note(2), note(3)]);
    expect(await notes.check()).toStrictEqual({ ok: true, documents: 3, entries: 7, differences: [], found: 0 });
    await db
      .batch()
      .delete(['notes', 'by', 'tags', 'a', 1])
      .set(['notes', 'by', 'tags', 'b', 1], true)
      .set(['notes', 'by', 'title', 'note 2'], 3)
      .set(['notes', 'by', 'alias', 'x'], 9)
      .set(['notes', 'by', 'gone', 'x', 1], true)
      .commit();
    const { ok, differences, found } = await notes.check();
    expect([ok, found]).toStrictEqual([false, 6]);
    expect(differences).toStrictEqual([
      { kind: 'missing', index: 'tags', value: 'a', key: 1 },
      { kind: 'missing', index: 'title', value: 'note 2', key: 2 },
      { kind: 'stray', index: 'alias', value: 'x', key: 9 },
      { kind: 'stray', index: 'gone', value: 'x', key: 1 },
      { kind: 'stray', index: 'tags', value: 'b', key: 1 },
      { kind: 'stray', index: 'title', value: 'note 2', key: 3 },
    ]);
    await notes.reindex();
    expect(await notes.check()).toMatchObject({ ok: true, differences: [] });
    await expectKept(db, [note(1, { tags: ['a'] }), note(2), note(3)]);
  });

  test('lists what is foreign: entries and documents whose keys are none, and values that are none', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1, { tags: ['a'] }), note(2)]);
    let deep: Key = 'deep';
    for (let i = 0; i < 9; i++) deep = [deep];
    await db
      .batch()
      .set(['notes', 'by'], 1)
      .set(['notes', 'by', 'tags'], null)
      .set(['notes', 'by', 'tags', 'b'], { toString: 1 })
      .set(['notes', 'by', 'tags', 'c', deep], true)
      .set(['notes', 'by', 'title', 'note 1'], { toString: 1 })
      .set(['notes', 'by', 'title', 'x'], new Map())
      .set(['notes', 'by', 'title', 'y', 1, 2], 1)
      .commit();
    const { ok, differences, found } = await notes.check();
    expect([ok, found]).toStrictEqual([false, 8]);
    expect(differences.map(({ kind, index }) => [kind, index])).toStrictEqual([
      ['missing', 'title'],
      ['stray', undefined],
      ['stray', 'tags'],
      ['stray', 'tags'],
      ['stray', 'tags'],
      ['stray', 'title'],
      ['stray', 'title'],
      ['stray', 'title'],
    ]);
    await notes.reindex();
    expect(await notes.check()).toMatchObject({ ok: true, documents: 2 });
    await db.set(['notes', 'doc'], note(9));
    expect((await notes.check()).differences).toMatchObject([
      { kind: 'refused', error: expect.objectContaining({ code: 'VARVE_INVALID_KEY' }) },
    ]);
  });

  test('reports documents that an index cannot take, and its progress, until its signal', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany(Array.from({ length: 300 }, (_, i) => note(i)));
    await db.set(notes.keyOf(7), { id: 7, title: 7, tags: [], edited: 'x' });
    const report = await notes.check();
    expect(report.differences[0]).toMatchObject({ kind: 'refused', key: 7, error: expect.any(TypeError) });
    expect((await kept(db)).length).toBe(900);
    const heard: Progress[] = [];
    await notes.check({ onProgress: (progress) => heard.push(progress) });
    expect(heard.at(-1)).toStrictEqual({ done: 300, total: 300 });
    await expect(notes.check({ signal: AbortSignal.abort() })).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
    const strange = { onprogress: () => undefined };
    await expect(notes.check(strange as object)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    await expect(notes.reindex(strange as object)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
  });
});
