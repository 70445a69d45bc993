// Indexes when their definition changes, and collections in transactions, snapshots and live queries.

import { describe, expect, test, vi } from 'vitest';
import { ReservedKey } from '../../js/src/codec/reserved-key.ts';
import { collection, type Progress, VarveError } from '../../js/src/collections.ts';
import { ReadView } from '../../js/src/store/read-view.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { expectKept, ids, kept, type Note, note, notesOf } from './support/notes.ts';
import { code, openAsync, openTabs } from './support/stores.ts';

type Db = Store<Key, unknown>;

/** The collection as it was before, with an index that no longer exists. */
function former(db: Db, version?: number) {
  return collection<Note>()(db, 'notes', {
    key: 'id',
    version,
    indexes: { title: { of: ({ title }) => title.toLowerCase(), unique: true }, gone: 'title' },
  });
}

/** The same collection, with a function that makes another value of a title. */
function later(db: Db, version: number) {
  return collection<Note>()(db, 'notes', {
    key: 'id',
    version,
    indexes: { title: { of: ({ title }) => title.toUpperCase(), unique: true }, gone: 'title' },
  });
}

/** How many entries each index has. */
async function entryCounts(db: Db): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [key] of await kept(db)) {
    const [, kind, index] = key as [string, string, string];
    if (kind === 'by') counts[index] = (counts[index] ?? 0) + 1;
  }
  return counts;
}

describe('the signal of a call ends it', () => {
  type Calls = Record<string, (notes: ReturnType<typeof notesOf>, signal: AbortSignal) => Promise<unknown>>;
  const CALLS: Calls = {
    get: (notes, signal) => notes.get(1, { signal }),
    getMany: (notes, signal) => notes.getMany([1], { signal }),
    has: (notes, signal) => notes.has(1, { signal }),
    find: (notes, signal) => notes.find({ signal }).toArray(),
    findIndexed: (notes, signal) => notes.find('tags', { prefix: 'a', signal }).toArray(),
    first: (notes, signal) => notes.first('title', { signal }),
    keys: (notes, signal) => notes.keys({ signal }).toArray(),
    keysIndexed: (notes, signal) => notes.keys('title', { signal }).toArray(),
    count: (notes, signal) => notes.count({ signal }),
    countIndexed: (notes, signal) => notes.count('title', { signal }),
    countRepeating: (notes, signal) => notes.count('tags', { gte: 'a', signal }),
    insert: (notes, signal) => notes.insert(note(7), { signal }),
    put: (notes, signal) => notes.put(note(7), { signal }),
    update: (notes, signal) => notes.update(1, { title: 'x' }, { signal }),
    delete: (notes, signal) => notes.delete(1, { signal }),
    clear: (notes, signal) => notes.clear({ signal }),
  };

  /** Fails unless the call is aborted while no call of the first tab goes on. */
  async function expectAborted(call: Promise<unknown>, control: AbortController, isHeld: () => boolean): Promise<void> {
    call.catch(() => undefined);
    await vi.waitFor(() => expect(isHeld()).toBe(true));
    control.abort();
    await expect(call).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  }

  test.each(Object.entries(CALLS))('while indexes are built: %s', async (_, call) => {
    let gate: Promise<void> | undefined;
    let open = (): void => undefined;
    let isHeld = false;
    const [db] = (await openTabs(1, () => {
      isHeld ||= gate !== undefined;
      return gate;
    })) as [Db];
    await former(db).insertMany([note(1, { tags: ['a'] }), note(2)]);
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const control = new AbortController();
    await expectAborted(call(notesOf(db), control.signal), control, () => isHeld);
    gate = undefined;
    open();
    expect(await notesOf(db).count('tags')).toBe(1);
  });

  test.each(Object.entries(CALLS).filter(([name]) => /Indexed|first|insert|put|update|delete|clear/.test(name)))(
    'while they are built anew: %s',
    async (_, call) => {
      let gate: Promise<void> | undefined;
      let open = (): void => undefined;
      let isHeld = false;
      const [db, other] = (await openTabs(2, () => {
        isHeld ||= gate !== undefined;
        return gate;
      })) as [Db, Db];
      const notes = notesOf(db);
      await notes.insertMany([note(1, { tags: ['a'] }), note(2)]);
      await notesOf(other).reindex();
      // From the transaction on that begins to prepare them.
      vi.spyOn(db, 'transaction').mockImplementationOnce((...given) => {
        gate = new Promise((resolve) => {
          open = resolve;
        });
        return db.transaction(...given);
      });
      const control = new AbortController();
      await expectAborted(call(notes, control.signal), control, () => isHeld);
      gate = undefined;
      open();
      expect(await notes.count('tags')).toBe(1);
    },
  );

  test('while a snapshot is checked, for each caller by itself', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1, { tags: ['a'] }));
    await using then = db.snapshot();
    let go = (): void => undefined;
    const { get } = then;
    vi.spyOn(then, 'get').mockImplementationOnce(async (...given) => {
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      return get.apply(then, given);
    });
    const control = new AbortController();
    const [aborted, counted] = [
      notes.in(then).count('title', { signal: control.signal }),
      notes.in(then).find('title').toArray(),
    ];
    await expectAborted(aborted, control, () => true);
    go();
    expect(await counted).toHaveLength(1);
  });
});

describe('a definition that has changed', () => {
  const all = Array.from({ length: 600 }, (_, i) => note(i, { tags: ['a', `${i}`], folder: 'f', aliases: [`x${i}`] }));

  test('builds new indexes, drops former ones, and reports the progress', async () => {
    const db = await openAsync();
    const old = collection<Note>()(db, 'notes', { key: 'id', indexes: { edited: 'edited', gone: 'title' } });
    await old.insertMany(all);
    const edited = await db.getEntry(['notes', 'by', 'edited', new Date(0), 0]);
    const heard: Progress[] = [];
    const notes = notesOf(db);
    await notes.ready({ onProgress: (progress) => heard.push(progress) });
    await expectKept(db, all);
    expect(heard.map(({ done }) => done)).toStrictEqual([250, 500, 600, 600]);
    expect(new Set(heard.map(({ total }) => total))).toStrictEqual(new Set([600]));
    // Unchanged indexes are left alone.
    expect(await db.getEntry(['notes', 'by', 'edited', new Date(0), 0])).toStrictEqual(edited);
    expect(await notes.count('tags', 'a')).toBe(600);
    // And no work is done twice.
    const { sequence } = await db.stats();
    await notesOf(db).ready();
    expect((await db.stats()).sequence).toBe(sequence);
  });

  test('is built once by tabs that open it at once', async () => {
    const stores = await openTabs(3);
    const [db] = stores as [Db, Db, Db];
    const old = collection<Note>()(db, 'notes', { key: 'id' });
    await old.insertMany(all);
    const done: number[] = [];
    const onProgress = (progress: Progress): void => void done.push(progress.done);
    await Promise.all(stores.map((store) => notesOf(store).ready({ onProgress })));
    await expectKept(db, all);
    expect(Math.max(...done)).toBe(600);
  });

  test('refuses the code of the former definition', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const old = former(db);
    await old.insertMany([note(1), note(2)]);
    const notes = notesOf(other);
    await notes.ready();
    const outdated = code('VARVE_VERSION');
    await expect(old.insert(note(3))).rejects.toThrow(outdated);
    await expect(old.put(note(1))).rejects.toThrow(outdated);
    await expect(old.update(1, { title: 'New' })).rejects.toThrow(outdated);
    await expect(old.delete(1)).rejects.toThrow(outdated);
    await expect(old.clear()).rejects.toThrow(outdated);
    await expect(old.find('gone').toArray()).rejects.toThrow(outdated);
    await expect(old.keys('gone').toArray()).rejects.toThrow(outdated);
    await expect(old.count('gone')).rejects.toThrow(outdated);
    await expect(db.transaction((tx) => old.in(tx).insert(note(3)))).rejects.toThrow(outdated);
    // Documents are unchanged.
    expect(await ids(old.find())).toStrictEqual([1, 2]);
    await expectKept(db, [note(1), note(2)]);
  });

  test('refuses that code also after the store was emptied', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    const old = former(db);
    await old.insert(note(1));
    const notes = notesOf(other);
    await notes.ready();
    await other.clear();
    await expect(old.insert(note(2))).rejects.toThrow(code('VARVE_VERSION'));
    await notes.insert(note(3));
    await db.transaction((tx) => notesOf(db).in(tx).insert(note(4)));
    await expectKept(db, [note(3), note(4)]);
  });

  test('of a lower version than the last one is refused', async () => {
    const db = await openAsync();
    await former(db, 3).insert(note(1));
    await expect(former(db, 2).insert(note(2))).rejects.toThrow('has version 3, and this code defines version 2');
    await expect(notesOf(db).ready()).rejects.toThrow(code('VARVE_VERSION'));
    await former(db, 3).insert(note(2));
  });

  test('kept in a later format is refused, and left as it is', async () => {
    const db = await openAsync();
    await notesOf(db).insert(note(1));
    const definition = new ReservedKey('collection "notes"') as unknown as Key;
    const found = (await db.get(definition)) as { format: number };
    expect(found.format).toBe(1);
    await db.set(definition, { ...found, format: 2, version: 0 });
    for (const call of [() => notesOf(db).insert(note(2)), () => notesOf(db).count('title'), () => notesOf(db).ready()])
      await expect(call()).rejects.toThrow(code('VARVE_VERSION'));
    expect(await db.get(definition)).toEqual({ ...found, format: 2, version: 0 });
    await expectKept(db, [note(1)]);
  });

  test('builds indexes of functions anew when its version is raised, and only then', async () => {
    const db = await openAsync();
    await former(db).insertMany([note(1, { title: 'a' }), note(2, { title: 'b' })]);
    const gone = await db.getEntry(['notes', 'by', 'gone', 'a', 1]);
    const notes = later(db, 2);
    expect(await notes.keys('title').toArray()).toStrictEqual([1, 2]);
    expect(await notes.first('title', 'B')).toStrictEqual(note(2, { title: 'b' }));
    expect(await entryCounts(db)).toStrictEqual({ title: 2, gone: 2 });
    expect(await db.getEntry(['notes', 'by', 'gone', 'a', 1])).toStrictEqual(gone);
  });

  test('that requires unique values where there are none fails, and the former one stays', async () => {
    const db = await openAsync();
    const loose = () => collection<Note>()(db, 'notes', { key: 'id', indexes: { folder: 'folder' } });
    await loose().insertMany([note(1, { folder: 'a' }), note(2, { folder: 'b' }), note(3, { folder: 'a' })]);
    const strict = () =>
      collection<Note>()(db, 'notes', { key: 'id', version: 2, indexes: { folder: { of: 'folder', unique: true } } });
    const failing = strict();
    await expect(failing.ready()).rejects.toThrow(
      "The documents 1 and 3 of 'notes' both have the value \"a\" in the unique index 'folder'.",
    );
    await expect(failing.insert(note(4))).rejects.toThrow(code('VARVE_CONFLICT'));
    await loose().update(3, { folder: 'c' });
    expect(await loose().keys('folder').toArray()).toStrictEqual([1, 2, 3]);
    expect(await strict().first('folder', 'c')).toStrictEqual(note(3, { folder: 'c' }));
    expect(await entryCounts(db)).toStrictEqual({ folder: 3 });
  });

  test('is made anew where entries were lost, with those that the documents have', async () => {
    const db = await openAsync();
    const old = former(db);
    await old.ready();
    const notes = notesOf(db);
    await notes.insertMany([note(1), note(2), note(3, { tags: ['a'] })]);
    // A repair may leave the store like this.
    await db.batch().delete(['notes', 'doc', 2]).set(['notes', 'by', 'tags', 'b', 1], true).commit();
    const again = notesOf(db);
    await again.reindex();
    expect(await ids(again.find('title'))).toStrictEqual([1, 3]);
    await expectKept(db, [note(1), note(3, { tags: ['a'] })]);
    await again.insert(note(2));
    // Code with the same definition continues the indexes; code with any other definition does not.
    await notes.insert(note(4));
    await expect(old.insert(note(5))).rejects.toThrow(code('VARVE_VERSION'));
    await expectKept(db, [note(1), note(2), note(3, { tags: ['a'] }), note(4)]);
  });

  test('is made anew where a repair brought back a generation that is over', async () => {
    const over = (generation: number): Key => new ReservedKey(`over "notes" ${generation}`) as unknown as Key;
    const uses: readonly ((db: Db, notes: ReturnType<typeof notesOf>) => Promise<unknown>)[] = [
      (_, notes) => notes.insert(note(2)),
      (_, notes) => notes.update(1, { title: 'note 1' }),
      (_, notes) => notes.find('tags', 'a').toArray(),
      (_, notes) => notes.count('title'),
      (_, notes) => notes.ready(),
      (db, notes) => db.transaction((tx) => notes.in(tx).put(note(2))),
    ];
    for (const use of uses) {
      const db = await openAsync();
      const before = notesOf(db);
      await before.insert(note(1, { tags: ['a'] }));
      await db.batch().set(over(1), true).set(over(2), true).delete(['notes', 'by', 'tags', 'a', 1]).commit();
      const notes = notesOf(db);
      await use(db, notes);
      await before.ready();
      expect(await before.count('tags', 'a'), String(use)).toBe(1);
      expect(await notes.check()).toMatchObject({ ok: true });
    }
  });

  test('continues where a tab ended in the middle', async () => {
    const [db, other] = (await openTabs(2)) as [Db, Db];
    await collection<Note>()(db, 'notes', { key: 'id' }).insertMany(all);
    // It fails after the first page, as if its tab were closed.
    const dying = notesOf(db).ready({
      onProgress: () => {
        throw new Error('closed');
      },
    });
    await expect(dying).rejects.toThrow('closed');
    const heard: number[] = [];
    await notesOf(other).ready({ onProgress: ({ done }) => heard.push(done) });
    expect(heard).toStrictEqual([500, 600, 600]);
    await expectKept(db, all);
  });
});

describe('in a transaction', () => {
  test('collections and other keys change together, or not at all', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    const folders = collection<{ name: string; notes: number[] }>()(db, 'folders', { key: 'name' });
    await folders.insert({ name: 'work', notes: [] });
    const add = (one: Note): Promise<void> =>
      db.transaction(async (tx) => {
        const id = await notes.in(tx).insert(one);
        await folders.in(tx).update('work', (folder) => ({ ...folder, notes: [...folder.notes, id] }));
        tx.set('last', id);
        expect(await notes.in(tx).first('title', one.title.toLowerCase())).toStrictEqual(one);
        expect(await notes.in(tx).count('edited')).toBe((await folders.in(tx).get('work'))?.notes.length);
      });
    await add(note(1));
    await expect(add(note(1, { title: 'Other' }))).rejects.toThrow(code('VARVE_CONFLICT'));
    await expect(add(note(2, { title: 'Note 1' }))).rejects.toThrow(code('VARVE_CONFLICT'));
    await Promise.all([add(note(3)), add(note(4))]);
    expect((await folders.get('work'))?.notes.sort()).toStrictEqual([1, 3, 4]);
    await expectKept(db, [note(1), note(3), note(4)]);
    await expect(
      db.transaction(async (tx) => {
        await notes.in(tx).clear();
        throw new RangeError('no');
      }),
    ).rejects.toThrow(RangeError);
    await expectKept(db, [note(1), note(3), note(4)]);
  });

  test('a store is emptied, and filled again', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1, { tags: ['a'] }), note(2)]);
    let runs = 0;
    await db.transaction(async (tx) => {
      runs++;
      tx.clear();
      await notes.in(tx).insert(note(1, { tags: ['b'] }));
      expect(await notes.in(tx).count('tags')).toBe(1);
    });
    expect(runs).toBe(1);
    await expectKept(db, [note(1, { tags: ['b'] })]);
  });

  test('a conflict that is caught there has written nothing', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1));
    await db.transaction(async (tx) => {
      const inside = notes.in(tx);
      await expect(inside.insertMany([note(2), note(1)])).rejects.toThrow(code('VARVE_CONFLICT'));
      await expect(inside.insertMany([note(3), note(3)])).rejects.toThrow(code('VARVE_CONFLICT'));
      await inside.insert(note(4));
    });
    await expectKept(db, [note(1), note(4)]);
  });

  test('that began before the indexes were built, it runs again', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    let runs = 0;
    await db.transaction(async (tx) => {
      runs++;
      await tx.get('x');
      await notes.in(tx).insert(note(1));
    });
    expect(runs).toBe(2);
    await expectKept(db, [note(1)]);
  });

  test('documents that it found conflict with a write of them meanwhile', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1, { tags: ['a'] }), note(2, { tags: ['b'] })]);
    let runs = 0;
    const moved = await db.transaction(async (tx) => {
      const found = await notes.in(tx).find('tags', 'a').toArray();
      if (runs++ === 0) await notes.insert(note(3, { tags: ['a'] }));
      for (const { id } of found) await notes.in(tx).update(id, { tags: ['b'] });
      return found.length;
    });
    expect([moved, runs]).toStrictEqual([2, 2]);
    expect(await ids(notes.find('tags', 'b'))).toStrictEqual([1, 2, 3]);
  });
});

test('a snapshot has the documents of its read point, by every index', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  await using empty = db.snapshot();
  await notes.insertMany([note(1, { tags: ['a'] }), note(2)]);
  await using then = db.snapshot();
  const before = notes.in(then);
  await notes.clear();
  expect([await before.count('tags'), await before.count(), await before.has(2)]).toStrictEqual([1, 2, true]);
  expect(await before.find('tags', 'a').toArray()).toStrictEqual([note(1, { tags: ['a'] })]);
  expect(await notes.in(empty).find('tags').toArray()).toStrictEqual([]);
  expect('insert' in before).toBe(false);
  // It does not have the indexes of another definition.
  const definedAnew = former(db);
  await expect(definedAnew.in(then).find('gone').toArray()).rejects.toThrow(code('VARVE_RETRY'));
});

test('anything but a snapshot or a transaction is refused as the view of a collection', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  for (const wrong of [db, await openAsync(), {}, null, undefined, 5]) {
    expect(() => notes.in(wrong as never)).toThrow(code('VARVE_INVALID_ARGUMENT'));
  }
});

test('a snapshot whose check has failed once is checked again', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  await notes.insert(note(1));
  await using then = db.snapshot();
  vi.spyOn(ReadView.prototype, 'get').mockRejectedValueOnce(new VarveError('VARVE_LEADER_STALLED', 'It stands still.'));
  await expect(notes.in(then).count('title')).rejects.toThrow(code('VARVE_LEADER_STALLED'));
  expect(await notes.in(then).count('title')).toBe(1);
});

test('a live query follows a collection', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  await notes.ready();
  const tagged = db.live((view) => notes.in(view).keys('tags', 'a').toArray(), { prefix: ['notes'] });
  const stop = tagged.subscribe(() => undefined);
  await expect.poll(() => tagged.value).toStrictEqual([]);
  await notes.insert(note(1, { tags: ['a'] }));
  await expect.poll(() => tagged.value).toStrictEqual([1]);
  await notes.update(1, { tags: [] });
  await expect.poll(() => tagged.value).toStrictEqual([]);
  stop();
});

test('changes, scans and counts of the store show documents and entries, and no reserved keys', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  await notes.ready();
  const changes = db.changes();
  const next = changes.next();
  await notes.insert(note(1));
  await notes.reindex();
  await notes.delete(1);
  await db.set('last', 1);
  const keys: Key[] = [];
  for (let result = await next; result.done !== true; result = await changes.next()) {
    if (result.value.type !== 'set' && result.value.type !== 'delete') continue;
    if (result.value.key === 'last') break;
    keys.push(result.value.key as Key);
  }
  await changes.return?.();
  expect(new Set(keys.map((key) => (key as string[])[1]))).toStrictEqual(new Set(['doc', 'by']));
  expect([await db.count(), await db.keys().next()]).toStrictEqual([1, { done: false, value: 'last' }]);
});

test('a change of one document is reported with its key in the store', async () => {
  const db = await openAsync();
  const notes = notesOf(db);
  await notes.ready();
  const changes = db.watch(notes.keyOf(1));
  const next = changes.next();
  await notes.insertMany([note(2), note(1)]);
  expect((await next).value).toMatchObject({ type: 'set', key: ['notes', 'doc', 1], value: note(1) });
  await changes.return?.();
});
