// Documents with indexes, over the real engine: the effects of each call.

import { describe, expect, test, vi } from 'vitest';
import { collection, uuid7, VarveError } from '../../js/src/collections.ts';
import { ReadView } from '../../js/src/store/read-view.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { expectKept, ids, type Note, note, notesOf } from './support/notes.ts';
import { code, conflict, openAsync, openTabs } from './support/stores.ts';

describe('one document', () => {
  test('is inserted once, and found by its key and by every index', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    const silt = note(1, { title: 'Silt', tags: ['lake', 'mud', 'lake'], folder: 'work', aliases: ['s', 's'] });
    expect(await notes.insert(silt)).toBe(1);
    expect([await notes.get(1), await notes.has(1), await notes.has(2)]).toStrictEqual([silt, true, false]);
    expect(await notes.getMany([2, 1])).toStrictEqual([undefined, silt]);
    await expectKept(db, [silt]);
    expect(await notes.find('edited', silt.edited).toArray()).toStrictEqual([silt]);
    expect(await notes.find('tags', 'mud').toArray()).toStrictEqual([silt]);
    expect(await notes.first('title', 'silt')).toStrictEqual(silt);
    expect(await notes.first('place', ['work', silt.edited])).toStrictEqual(silt);
    expect(await notes.first('alias', 's')).toStrictEqual(silt);
    expect(await notes.find().toArray()).toStrictEqual([silt]);
    expect(await notes.first('title', 'Silt')).toBeUndefined();
  });

  test('conflicts with one of its key, or of its value in a unique index, and leaves nothing', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    const first = note(1, { title: 'Silt', aliases: ['a', 'b'] });
    await notes.insert(first);
    const place = await db.getEntry(['notes', 'doc', 1]);
    await expect(notes.insert(note(1, { title: 'Other' }))).rejects.toThrow(
      conflict(['notes', 'doc', 1], place?.sequence ?? 0),
    );
    await expect(notes.insert(note(2, { title: 'SILT', tags: ['x'] }))).rejects.toThrow(
      'The collection \'notes\' has a document with the value "silt" in the unique index "title" already. Nothing was written.',
    );
    await expect(notes.put(note(3, { aliases: ['c', 'b'] }))).rejects.toThrow(code('VARVE_CONFLICT'));
    await expectKept(db, [first]);
  });

  test('is replaced by put, with exactly the entries of the new one', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.put(note(1, { tags: ['a', 'b'], folder: 'work', aliases: ['x'] }));
    const next = note(1, { tags: ['b', 'c'], title: 'Next', aliases: ['x', 'y'], edited: new Date(5) });
    expect(await notes.put(next)).toBe(1);
    await expectKept(db, [next]);
    // Other documents may take the unique values that it released.
    const other = note(2, { title: 'note 1' });
    await notes.insert(other);
    await expectKept(db, [next, other]);
  });

  test('is updated by properties or by a function, which may refuse or wait', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1, { tags: ['a'] }));
    expect(await notes.update(1, { title: 'Silt' })).toStrictEqual(note(1, { title: 'Silt', tags: ['a'] }));
    const tagged = await notes.update(1, async (old) => ({ ...old, tags: [...old.tags, 'b'] }));
    expect(tagged).toStrictEqual(note(1, { title: 'Silt', tags: ['a', 'b'] }));
    expect(await notes.update(1, () => undefined)).toStrictEqual(tagged);
    expect(await notes.update(2, { title: 'None' })).toBeUndefined();
    await expect(notes.update(1, { id: 2 })).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    await expect(
      notes.update(1, () => {
        throw new RangeError('no');
      }),
    ).rejects.toThrow(RangeError);
    await expectKept(db, [tagged as Note]);
  });

  test('is updated by a function that changes it in place, or makes a copy that shares its arrays', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    type Loose = { -readonly [P in keyof Note]: Note[P] };
    const changes: readonly ((old: Loose) => Loose | Promise<Loose>)[] = [
      (old) => Object.assign(old, { title: 'New', folder: 'work' }),
      async (old) => {
        (old.tags as string[]).push('silt');
        (old.aliases as string[]).splice(0, 1, 'c');
        return { ...old };
      },
      (old) => {
        old.edited.setTime(5);
        delete old.folder;
        return old;
      },
    ];
    await notes.insert(note(1, { title: 'Old', tags: ['lake'], aliases: ['a', 'b'] }));
    for (const change of changes) {
      const updated = (await notes.update(1, change)) as Note;
      await expectKept(db, [updated]);
      await db.transaction((tx) => notes.in(tx).update(1, async (old) => change(await change(old))));
      await expectKept(db, [(await notes.get(1)) as Note]);
    }
    // Other documents may take the values that it released.
    await notes.insert(note(2, { title: 'Old', aliases: ['a'] }));
    expect(await notes.check()).toMatchObject({ ok: true, documents: 2 });
  });

  test('is updated by each of two changes that a transaction makes at once', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1));
    await db.transaction(async (tx) => {
      const add = (tag: string) => (old: Note) => ({ ...old, tags: [...old.tags, tag] });
      await Promise.all([notes.in(tx).update(1, add('lake')), notes.in(tx).update(1, add('silt'))]);
    });
    await expectKept(db, [note(1, { tags: ['lake', 'silt'] })]);
  });

  test('is deleted with its entries, once', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1, { tags: ['a'], folder: 'f', aliases: ['x'] }), note(2, { tags: ['a'] })]);
    expect([await notes.delete(1), await notes.delete(1)]).toStrictEqual([true, false]);
    await expectKept(db, [note(2, { tags: ['a'] })]);
  });

  test.each([null, undefined, 5, 'text', true, 1n])('is an object, and %s is none', async (given) => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1));
    const wrong = given as never;
    const refused = code(given === undefined ? 'VARVE_INVALID_VALUE' : 'VARVE_INVALID_ARGUMENT');
    type Writes = Pick<typeof notes, 'insert' | 'insertMany' | 'put' | 'update'>;
    const writes: ((to: Writes) => Promise<unknown>)[] = [
      (to) => to.insert(wrong),
      (to) => to.insertMany([note(2), wrong]),
      (to) => to.put(wrong),
      (to) => to.update(1, wrong),
      ...(given === undefined ? [] : [(to: Writes) => to.update(1, () => wrong)]),
    ];
    for (const write of writes) {
      await expect(write(notes)).rejects.toThrow(refused);
      await expect(db.transaction((tx) => write(notes.in(tx) as Writes))).rejects.toThrow(refused);
    }
    await expectKept(db, [note(1)]);
  });

  test('that an index cannot take is refused', async () => {
    const db = await openAsync();
    const odd = collection<{ id: string; of: unknown }>()(db, 'odd', {
      key: 'id',
      indexes: {
        of: (document) => document.of as string,
        all: { of: (document) => (document.of === 'text' ? 'text' : []), multi: true },
      },
    });
    await expect(odd.insert({ id: 'a', of: { not: 'a key' } })).rejects.toThrow(
      "The value for the index 'of' of 'odd' in the document \"a\" is no key",
    );
    await expect(odd.insert({ id: 'a', of: Number.NaN })).rejects.toThrow(code('VARVE_INVALID_KEY'));
    await expect(odd.insert({ id: 'a', of: 'text' })).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    await expect(odd.insert({ id: undefined as never, of: 1 })).rejects.toThrow("The key of a document of 'odd'");
    expect(await odd.count()).toBe(0);
    // A search finds nothing of a missing document.
    await odd.insertMany([
      { id: 'b', of: null },
      { id: 'c', of: undefined },
    ]);
    expect([await odd.count(), await odd.count('of')]).toStrictEqual([2, 0]);
  });
});

describe('several documents', () => {
  test('are inserted all or none, also when two of them conflict', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    const sound = [note(1), note(2)];
    expect(await notes.insertMany(sound)).toStrictEqual([1, 2]);
    expect(await notes.insertMany([])).toStrictEqual([]);
    await expect(notes.insertMany([note(3), note(2)])).rejects.toThrow(code('VARVE_CONFLICT'));
    await expect(notes.insertMany([note(3), note(3, { title: 'Other' })])).rejects.toThrow(code('VARVE_CONFLICT'));
    await expect(notes.insertMany([note(3, { title: 'Same' }), note(4, { title: 'same' })])).rejects.toThrow(
      conflict(['notes', 'by', 'title', 'same'], null),
    );
    await expectKept(db, sound);
  });

  test('are cleared, and other keys of the store are left', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    const others = notesOf(db, 'note');
    await db.set(['notes'], 'mine');
    await notes.insertMany([note(1, { tags: ['a'] }), note(2)]);
    await others.insert(note(1));
    await notes.clear();
    await expectKept(db, []);
    await expectKept(db, [note(1)], 'note');
    expect(await db.get(['notes'])).toBe('mine');
    await notes.insert(note(1));
    await expectKept(db, [note(1)]);
  });

  test('called in one turn before the indexes are ready take effect in their order', async () => {
    const notes = notesOf(await openAsync());
    const calls = [notes.insert(note(1)), notes.get(1), notes.insertMany([note(2)]), notes.count('edited')];
    expect(await Promise.all(calls)).toStrictEqual([1, note(1), [2], 2]);
  });

  // Story: a call with a signal noticed one step later that the indexes were ready. So the call behind it went first, and was overwritten.
  test('called before the indexes are ready take effect in their order, with a signal or without', async () => {
    const notes = notesOf(await openAsync());
    const { signal } = new AbortController();
    await Promise.all([notes.put(note(1, { title: 'First' }), { signal }), notes.put(note(1, { title: 'Second' }))]);
    expect((await notes.get(1))?.title).toBe('Second');
  });
});

describe('finding', () => {
  async function filled() {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([
      note(1, { tags: ['lake', 'land'], folder: 'a' }),
      note(2, { tags: ['lake'], folder: 'ab' }),
      note(3, { tags: ['sea'], folder: 'a' }),
      note(4, { tags: ['lagoon', 'lake', 'river'], folder: 'b' }),
      note(5, { folder: undefined }),
    ]);
    return { db, notes };
  }

  test('by ranges of values, in order, reversed, limited', async () => {
    const { notes } = await filled();
    const at = (seconds: number): Date => new Date(1000 * seconds);
    expect(await ids(notes.find('edited'))).toStrictEqual([1, 2, 3, 4, 5]);
    expect(await ids(notes.find('edited', { gte: at(2), lt: at(4) }))).toStrictEqual([2, 3]);
    expect(await ids(notes.find('edited', { gt: at(2), lte: at(4) }))).toStrictEqual([3, 4]);
    expect(await ids(notes.find('edited', { reverse: true, limit: 2 }))).toStrictEqual([5, 4]);
    expect(await ids(notes.find('edited', { eq: at(3) }))).toStrictEqual([3]);
    expect(await ids(notes.find('edited', { limit: 0 }))).toStrictEqual([]);
    expect(await ids(notes.find('title', { gt: 'note 2', lte: 'note 4' }))).toStrictEqual([3, 4]);
    expect(await ids(notes.find({ gt: 1, lte: 3, reverse: true }))).toStrictEqual([3, 2]);
    expect(await ids(notes.find({ eq: 2 }))).toStrictEqual([2]);
  });

  test('by beginnings of strings and of arrays, with bounds in them', async () => {
    const { notes } = await filled();
    expect(await ids(notes.find('place', { prefix: ['a'] }))).toStrictEqual([1, 3]);
    expect(await ids(notes.find('place', { prefix: ['a'], gt: ['a', new Date(1000)] }))).toStrictEqual([3]);
    expect(await ids(notes.find('place', { gte: ['ab'], reverse: true }))).toStrictEqual([4, 2]);
    expect(await ids(notes.find('title', { prefix: 'note', limit: 2 }))).toStrictEqual([1, 2]);
    expect(await ids(notes.find('title', { prefix: 'note 3' }))).toStrictEqual([3]);
    expect(await ids(notes.find('title', { prefix: 'x' }))).toStrictEqual([]);
  });

  test('by an index of several values gives each document once', async () => {
    const { notes } = await filled();
    expect(await ids(notes.find('tags', 'lake'))).toStrictEqual([1, 2, 4]);
    expect(await ids(notes.find('tags', { prefix: 'la' }))).toStrictEqual([4, 1, 2]);
    expect(await ids(notes.find('tags', { prefix: 'la', limit: 2 }))).toStrictEqual([4, 1]);
    expect(await ids(notes.find('tags', { reverse: true }))).toStrictEqual([3, 4, 1, 2]);
    expect(await notes.keys('tags', { prefix: 'la', reverse: true }).toArray()).toStrictEqual([1, 4, 2]);
    expect([await notes.count('tags'), await notes.count('tags', 'lake')]).toStrictEqual([4, 3]);
    expect(await notes.count('tags', { gte: 'land', limit: 1 })).toBe(3);
  });

  test('reads only keys, or counts, where that is all', async () => {
    const { notes } = await filled();
    expect(await notes.keys('title', { gte: 'note 4' }).toArray()).toStrictEqual([4, 5]);
    expect(await notes.keys({ lt: 3, reverse: true }).toArray()).toStrictEqual([2, 1]);
    expect([await notes.count(), await notes.count({ gt: 3 }), await notes.count('place', { prefix: ['a'] })]).toEqual([
      5, 2, 2,
    ]);
  });

  test('has the read point of its beginning, however long it takes', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    const all = Array.from({ length: 400 }, (_, i) => note(i, { tags: ['all'] }));
    await notes.insertMany(all);
    const query = notes.find('tags', 'all');
    let count = 0;
    for await (const one of query) {
      expect(one).toStrictEqual(all[count]);
      if (count++ === 0) {
        await notes.delete(399);
        await notes.update(200, { tags: [], title: 'Changed' });
        await notes.insert(note(1000, { tags: ['all'] }));
      }
    }
    expect(count).toBe(400);
    // A second walk reads a later state.
    expect(await ids(query)).toStrictEqual(
      all
        .map(({ id }) => id)
        .filter((id) => id !== 200 && id !== 399)
        .concat(1000),
    );
  });

  test('keeps nothing open after it is over, or left', async () => {
    const { db, notes } = await filled();
    for await (const _ of notes.find('tags', { gte: 'a' })) break;
    for await (const _ of notes.find('edited')) break;
    for await (const _ of notes.keys('tags')) break;
    await notes.find('edited').toArray();
    await notes.first('edited');
    await expect
      .poll(async () => {
        const { snapshots, scans } = await db.stats();
        return [snapshots, scans];
      })
      .toStrictEqual([0, 0]);
  });

  test('ends with its signal, and refuses invalid arguments at once', async () => {
    const { notes } = await filled();
    const control = new AbortController();
    const found = notes.find('edited', { signal: control.signal })[Symbol.asyncIterator]();
    await found.next();
    control.abort();
    await expect(notes.find('edited', { signal: control.signal }).toArray()).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
    await found.return();
    expect(() => notes.find('edited', { gt: new Date(0), gte: new Date(0) })).toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(() => notes.find('edited', { eq: new Date(0), gte: new Date(0) })).toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(() => notes.find('edited', { limit: -1 })).toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(() => notes.find('edited', { before: 1 } as never)).toThrow(
      'There is no option before here; there is eq, gt,',
    );
    expect(() => notes.find('edited', { eq: null } as never)).toThrow(code('VARVE_INVALID_KEY'));
    for (const prefix of [new Date(0), 5, true, {}, null]) {
      expect(() => notes.find('edited', { prefix } as never)).toThrow(/VARVE|prefix/);
      expect(() => notes.find('edited', { prefix } as never)).toThrow(expect.objectContaining({ name: 'VarveError' }));
    }
    expect(() => notes.find('nothing' as 'tags')).toThrow("has no index 'nothing', but 'edited', 'tags'");
  });

  // Story: after an abort, a query by an index still returned the rest of its page: up to 128 documents, or 2,048 values.
  test('returns nothing more once its signal has aborted', async () => {
    const { notes } = await filled();
    const control = new AbortController();
    const { signal } = control;
    const found = notes.find('edited', { signal })[Symbol.asyncIterator]();
    const values = notes.distinct('edited', { signal })[Symbol.asyncIterator]();
    for (const walk of [found, values]) await walk.next();
    control.abort();
    for (const walk of [found, values])
      await expect(walk.next()).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  });

  // Story: a read by an index asks whether its indexes are out of date. That question had no signal, so an abort waited for the leader.
  test('ends with its signal also while the leader does not answer', async () => {
    let gate: Promise<void> | undefined;
    let open = (): void => undefined;
    let isHeld = false;
    const [db] = await openTabs(1, () => {
      isHeld ||= gate !== undefined;
      return gate;
    });
    const notes = notesOf(db as Store<Key, unknown>);
    await notes.insert(note(1, { tags: ['a'] }));
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const control = new AbortController();
    const { signal } = control;
    const ended = Promise.allSettled<unknown>([
      notes.find('tags', { signal }).toArray(),
      notes.keys('tags', { signal }).toArray(),
      notes.count('title', { signal }),
      notes.distinct('tags', { signal }).toArray(),
      notes.ready({ signal }),
    ]);
    await vi.waitFor(() => expect(isHeld).toBe(true));
    control.abort();
    for (const outcome of await ended) expect(outcome).toMatchObject({ reason: { name: 'AbortError' } });
    gate = undefined;
    open();
    expect(await notes.count('tags')).toBe(1);
  });

  // Story: the documents of a page were read in one request, however large they were. Then the engine refused the answer, and so the query.
  test('finds and checks documents that are too large for one answer', async () => {
    const { notes } = await filled();
    const { getMany } = ReadView.prototype;
    vi.spyOn(ReadView.prototype, 'getMany').mockImplementation(async function (
      this: ReadView<unknown, unknown>,
      keys,
      options,
    ) {
      const all = [...keys] as [string, string][];
      if (all.filter(([, kind]) => kind === 'doc').length > 2)
        throw new VarveError('VARVE_INVALID_ARGUMENT', 'The values of these keys take more than 256 MiB.');
      return getMany.call(this, all, options);
    });
    expect(await ids(notes.find('edited'))).toStrictEqual([1, 2, 3, 4, 5]);
    expect(await notes.check()).toMatchObject({ ok: true, documents: 5 });
  });
});

describe('keys', () => {
  test('are made where there are none, in order', async () => {
    const db = await openAsync();
    const letters = collection<{ id: string; text: string }>()(db, 'letters', { key: 'id', newKey: uuid7 });
    const first = await letters.insert({ text: 'a' });
    const rest = await letters.insertMany([{ text: 'b' }, { id: 'own', text: 'c' }]);
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await letters.find().toArray()).toStrictEqual([
      { id: first, text: 'a' },
      { id: rest[0], text: 'b' },
      { id: 'own', text: 'c' },
    ]);
    const many = Array.from({ length: 10_000 }, uuid7);
    expect([...many].sort()).toStrictEqual(many);
    expect(new Set(many).size).toBe(many.length);
  });

  test('can be functions, arrays, anything ordered', async () => {
    const db = await openAsync();
    interface Reading {
      readonly sensor: string;
      readonly at: Date;
      readonly value: bigint;
    }
    const readings = collection<Reading>()(db, 'readings', {
      key: ({ sensor, at }) => [sensor, at],
      indexes: { value: 'value' },
    });
    const all = [1, 2, 3].map((n): Reading => ({ sensor: n < 3 ? 'a' : 'b', at: new Date(n), value: BigInt(-n) }));
    await readings.insertMany(all);
    expect(await readings.get(['a', new Date(2)])).toStrictEqual(all[1]);
    expect(await readings.find({ prefix: ['a'] }).toArray()).toStrictEqual(all.slice(0, 2));
    expect(await readings.keys('value', { lt: -1n }).toArray()).toStrictEqual([
      ['b', new Date(3)],
      ['a', new Date(2)],
    ]);
    expect(await db.get(readings.keyOf(['b', new Date(3)]))).toStrictEqual(all[2]);
  });

  test.each([
    ['nothing', 'c', undefined],
    ['no name', '', { key: 'id' }],
    ['no key', 'c', {}],
    ['a version that is none', 'c', { key: 'id', version: 0 }],
    ['an index of nothing', 'c', { key: 'id', indexes: { x: { unique: true } } }],
    ['several properties that are several values', 'c', { key: 'id', indexes: { x: { of: ['a', 'b'], multi: true } } }],
    // Such an index was silently not unique.
    ['a text for true', 'c', { key: 'id', indexes: { x: { of: 'a', unique: 'yes' } } }],
    ['keys made for a function', 'c', { key: () => 1, newKey: uuid7 }],
  ])('a definition with %s is refused', async (_, name, definition) => {
    const db = await openAsync();
    expect(() => collection<{ id: string }>()(db, name, definition as never)).toThrow(code('VARVE_INVALID_ARGUMENT'));
  });
});

describe('updates of one document', () => {
  const addTag = (tag: string) => (old: Note) => ({ ...old, tags: [...old.tags, tag] });

  test('are all made, in the order of their calls, with those that replace it', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insert(note(1));
    const tags = Array.from({ length: 100 }, (_, i) => `t${i}`);
    await Promise.all(tags.map((tag) => notes.update(1, addTag(tag))));
    await expectKept(db, [note(1, { tags })]);
    await Promise.all([
      notes.put(note(1, { title: 'A' })),
      notes.put(note(1, { title: 'B' })),
      notes.update(1, addTag('c')),
    ]);
    await expectKept(db, [note(1, { title: 'B', tags: ['c'] })]);
  });

  // Story: a put into a collection without indexes did not wait for its turn. A delete that was called before it read the new document,
  // and deleted it.
  test('are made in their order in a collection without indexes, too', async () => {
    const bare = collection<Note>()(await openAsync(), 'bare', { key: 'id' });
    await bare.insert(note(1));
    await Promise.all([bare.delete(1), bare.put(note(1, { title: 'New' }))]);
    expect(await bare.get(1)).toStrictEqual(note(1, { title: 'New' }));
  });

  test('by several tabs are all made', async () => {
    const tabs = await openTabs(5);
    const collections = tabs.map((db) => notesOf(db));
    await collections[0]?.insert(note(1, { title: '' }));
    await Promise.all(
      collections.flatMap((notes) =>
        Array.from({ length: 20 }, () => notes.update(1, (old) => ({ ...old, title: `${old.title}x` }))),
      ),
    );
    expect((await collections[0]?.get(1))?.title).toBe('x'.repeat(100));
  });

  test('keep its expiry, inside a transaction, too', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.ready();
    const expiresAt = new Date(Date.now() + 1e6);
    const expires = async () => (await db.getEntry(notes.keyOf(1)))?.expiresAt;
    await db.set(notes.keyOf(1), note(1), { expiresAt });
    await notes.update(1, { title: 'Silt' });
    expect(await expires()).toStrictEqual(expiresAt);
    await db.transaction((tx) => notes.in(tx).update(1, { title: 'Clay' }));
    expect([await expires(), (await notes.get(1))?.title]).toStrictEqual([expiresAt, 'Clay']);
    await notes.put(note(1));
    expect(await expires()).toBeUndefined();
  });

  test('may change other documents in their function, and not the same', async () => {
    const db = await openAsync();
    const notes = notesOf(db);
    await notes.insertMany([note(1), note(2)]);
    await notes.update(1, async (old) => {
      await notes.update(2, addTag('a'));
      return addTag('a')(old);
    });
    await db.transaction((tx) =>
      notes.in(tx).update(1, async (old) => {
        await notes.in(tx).update(2, addTag('b'));
        return addTag('b')(old);
      }),
    );
    await expectKept(db, [note(1, { tags: ['a', 'b'] }), note(2, { tags: ['a', 'b'] })]);
    await db.transaction(async (tx) => {
      const inside = notes.in(tx).update(1, () => notes.in(tx).update(1, addTag('c')) as Promise<Note>);
      await expect(inside).rejects.toThrow('may not update the same key');
    });
  });
});
