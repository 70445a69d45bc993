// Pages of a query, distinct values and counts by value, compared with sorting and filtering all documents.

import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { compareKeys } from '../../js/src/collections/key.ts';
import { collection, type Where } from '../../js/src/collections.ts';
import { ReadView } from '../../js/src/store/read-view.ts';
import type { View } from '../../js/src/store/view.ts';
import type { Key } from '../../js/src/types.ts';
import { ids, type Note, type Notes, note, notesOf } from './support/notes.ts';
import { code, openAsync } from './support/stores.ts';

type IndexName = 'edited' | 'tags' | 'title' | 'place' | 'alias';

/** The values of a document in each index. */
const VALUES: Record<IndexName, (of: Note) => readonly Key[]> = {
  edited: ({ edited }) => [edited],
  tags: ({ tags }) => tags,
  title: ({ title }) => [title.toLowerCase()],
  place: ({ folder, edited }) => (folder === undefined ? [] : [[folder, edited]]),
  alias: ({ aliases = [] }) => aliases,
};

const TAG = fc.constantFrom('a', 'ab', 'b');
const DATE = fc.integer({ min: 0, max: 2 }).map((ms) => new Date(ms));
const CONTENT = fc.record({
  tags: fc.uniqueArray(TAG),
  folder: fc.option(TAG, { nil: undefined }),
  edited: DATE,
  hasAliases: fc.boolean(),
});
type Content = typeof CONTENT extends fc.Arbitrary<infer C> ? C : never;

/** A document with values that no other document may have. */
const noteOf = (id: number, { hasAliases, ...rest }: Content): Note =>
  note(id, { ...rest, aliases: hasAliases ? [`x${id}`, `y${10 - id}`] : undefined });

interface Bounds {
  readonly eq?: Key;
  readonly gte?: Key;
  readonly lt?: Key;
}
const QUERY: fc.Arbitrary<readonly [IndexName | undefined, Bounds]> = fc.oneof(
  fc.tuple(fc.constant('edited' as const), fc.oneof(fc.record({ gte: DATE }), fc.record({ eq: DATE }))),
  fc.tuple(
    fc.constant('tags' as const),
    fc.oneof(fc.record({ eq: TAG }), fc.record({ gte: TAG }), fc.record({ lt: TAG })),
  ),
  fc.tuple(fc.constant('title' as const), fc.constant({ gte: 'note 2' })),
  fc.tuple(
    fc.constant('place' as const),
    TAG.map((tag) => ({ gte: [tag] })),
  ),
  fc.tuple(fc.constant('alias' as const), fc.constantFrom<Bounds>({}, { gte: 'x3' })),
  fc.tuple(fc.constant(undefined), fc.constant({ lt: 8 })),
);

/** Where a query finds a document: at the first of its values in the range. Undefined if it does not. */
function placeIn(
  index: IndexName | undefined,
  { eq, gte, lt }: Bounds,
  isReverse: boolean,
  one: Note,
): Key | undefined {
  const values = index === undefined ? [one.id] : VALUES[index](one);
  const within = values.filter(
    (value) =>
      (eq === undefined || compareKeys(value, eq) === 0) &&
      (gte === undefined || compareKeys(value, gte) >= 0) &&
      (lt === undefined || compareKeys(value, lt) < 0),
  );
  const value = within.sort(compareKeys).at(isReverse ? -1 : 0);
  return value === undefined ? undefined : [value, one.id];
}

/** A change between two pages: a new content, or none. */
const CHANGE = fc.tuple(fc.nat(9), fc.option(CONTENT, { nil: undefined, freq: 2 }));

test('each page is what comes after the last document of the page before, whatever changes in between', async () => {
  const db = await openAsync();
  let number = 0;
  const documents = fc.array(CONTENT, { maxLength: 9 });
  const shape = fc.record({ limit: fc.integer({ min: 1, max: 3 }), reverse: fc.boolean() });
  const run = async (
    contents: readonly Content[],
    [index, bounds]: readonly [IndexName | undefined, Bounds],
    { limit, reverse }: { limit: number; reverse: boolean },
    changes: readonly (readonly [number, Content | undefined])[],
  ): Promise<void> => {
    const notes = notesOf(db, `notes ${number++}`);
    const model = new Map(contents.map((content, id) => [id, noteOf(id, content)]));
    await notes.insertMany(model.values());
    const order = (a: Key, b: Key): number => compareKeys(a, b) * (reverse ? -1 : 1);
    const place = (one: Note): Key | undefined => placeIn(index, bounds, reverse, one);
    let after: Note | undefined;
    for (let page = 0; ; page++) {
      const last = after === undefined ? undefined : place(after);
      const rest = [...model.values()]
        .filter((one) => place(one) !== undefined && (last === undefined || order(place(one) as Key, last) > 0))
        .sort((a, b) => order(place(a) as Key, place(b) as Key));
      const where = { ...bounds, reverse, after };
      const target = (more: object): [never, never] =>
        (index === undefined ? [{ ...where, ...more }] : [index, { ...where, ...more }]) as never;
      const found: Note[] = await notes.find(...target({ limit })).toArray();
      expect(found).toStrictEqual(rest.slice(0, limit));
      expect(await notes.keys(...target({ limit })).toArray()).toStrictEqual(found.map(({ id }) => id));
      expect(await notes.first(...target({}))).toStrictEqual(rest[0]);
      expect(await notes.count(...target({}))).toBe(rest.length);
      const change = changes[page];
      if (found.length < limit || (change === undefined && page > 20)) break;
      after = found.at(-1);
      if (change === undefined) continue;
      const [id, content] = change;
      if (content === undefined) model.delete(id);
      else model.set(id, noteOf(id, content));
      await (content === undefined ? notes.delete(id) : notes.put(noteOf(id, content)));
    }
  };
  await fc.assert(fc.asyncProperty(documents, QUERY, shape, fc.array(CHANGE, { maxLength: 4 }), run), { numRuns: 100 });
});

describe('a page', () => {
  test('before another one is read backwards from its first document', async () => {
    const notes = notesOf(await openAsync());
    const same = { edited: new Date(0) };
    await notes.insertMany(Array.from({ length: 7 }, (_, id) => note(id, same)));
    const second = await notes.find('edited', { after: note(2, same), limit: 3 }).toArray();
    expect(await ids(notes.find('edited', { after: note(2, same), limit: 3 }))).toStrictEqual([3, 4, 5]);
    const back = await notes.find('edited', { after: second[0], limit: 3, reverse: true }).toArray();
    expect(back.map(({ id }) => id)).toStrictEqual([2, 1, 0]);
  });

  test('needs only the key of a document where all values are equal, and its value elsewhere', async () => {
    const notes = notesOf(await openAsync());
    await notes.insertMany([1, 2, 3].map((id) => note(id, { tags: ['a', 'b'] })));
    expect(await notes.keys('tags', { eq: 'b', after: { id: 1 } }).toArray()).toStrictEqual([2, 3]);
    expect(await notes.keys({ after: { id: 2 } }).toArray()).toStrictEqual([3]);
    expect(await notes.keys('edited', { after: { id: 1, edited: new Date(1000) } }).toArray()).toStrictEqual([2, 3]);
    expect(() => notes.find('edited', { after: { id: 1 } })).toThrow("after has no value in the index 'edited'");
    expect(() => notes.find('edited', { after: {} })).toThrow(code('VARVE_INVALID_KEY'));
    for (const after of [null, 5, 'a'])
      expect(() => notes.find('edited', { after: after as never })).toThrow(code('VARVE_INVALID_ARGUMENT'));
  });

  test('begins at the range if the document is before it, and is empty if it is behind', async () => {
    const notes = notesOf(await openAsync());
    await notes.insertMany([1, 2, 3, 4, 5, 6].map((id) => note(id, { tags: [`t${id}`] })));
    for (const index of ['edited', 'tags'] as const) {
      const at = (id: number): never => (index === 'edited' ? new Date(1000 * id) : `t${id}`) as never;
      const page = (id: number, reverse: boolean) => {
        const after = note(id, { tags: [`t${id}`] });
        return ids(notes.find(index, { gte: at(3), lt: at(5), reverse, after }));
      };
      expect([await page(1, false), await page(6, false)]).toStrictEqual([[3, 4], []]);
      expect([await page(6, true), await page(1, true)]).toStrictEqual([[4, 3], []]);
    }
  });
});

/** Documents with a value, of which an index has many or few. */
function groupsOf(db: View<Key, unknown>, name: string) {
  return collection<{ id: number; group: number; groups: number[] }>()(db, name, {
    key: 'id',
    indexes: { group: 'group', groups: { of: 'groups', multi: true } },
  });
}

async function filled(sizes: readonly number[], name = 'groups') {
  const db = await openAsync();
  const all = sizes.flatMap((size, group) => Array<number>(size).fill(group));
  const groups = groupsOf(db, name);
  await groups.insertMany(all.map((group, id) => ({ id, group, groups: [group, -1] })));
  return { db, groups };
}

/** Compares what groups of these sizes have in a range with the sizes. */
async function expectCounted(sizes: readonly number[], where: Where<number>): Promise<void> {
  const { db, groups } = await filled(sizes);
  const { gte = 0, lt = sizes.length, reverse = false, limit } = where;
  const all = sizes.map((count, group) => [group, count] as const).filter(([, count]) => count > 0);
  const within = all.filter(([group]) => group >= gte && group < lt);
  if (reverse) within.reverse();
  const expected = within.slice(0, limit);
  await using snapshot = db.snapshot();
  for (const reads of [groups, groups.in(snapshot)]) {
    expect(await reads.countBy('group', where).toArray()).toStrictEqual(expected);
    expect(await reads.distinct('group', where).toArray()).toStrictEqual(expected.map(([group]) => group));
  }
  expect(await groups.countBy('groups', { ...where, gte }).toArray()).toStrictEqual(expected);
}

describe('distinct values', () => {
  test('and their counts are those of a walk over all entries', async () => {
    const size = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 126, max: 130 }), fc.constant(300));
    const where = fc.record(
      { gte: fc.nat(9), lt: fc.nat(9), reverse: fc.boolean(), limit: fc.nat(4) },
      { requiredKeys: [], noNullPrototype: true },
    );
    await fc.assert(fc.asyncProperty(fc.array(size, { maxLength: 8 }), where, expectCounted), { numRuns: 15 });
    // Pages grow while they have many values.
    const many = Array.from({ length: 500 }, (_, group) => 1 + (group % 3));
    for (const reverse of [false, true]) await expectCounted(many, { reverse });
  });

  test('of many entries are read by jumps, one for each value', async () => {
    const { groups } = await filled([3000, 3000, 3000]);
    const scans = vi.spyOn(ReadView.prototype, 'keys');
    const counts = vi.spyOn(ReadView.prototype, 'count');
    expect(await groups.distinct('group').toArray()).toStrictEqual([0, 1, 2]);
    expect([scans.mock.calls.length, counts.mock.calls.length]).toStrictEqual([4, 0]);
    expect(await groups.countBy('group', { limit: 2 }).toArray()).toStrictEqual([
      [0, 3000],
      [1, 3000],
    ]);
    expect([scans.mock.calls.length, counts.mock.calls.length]).toStrictEqual([6, 2]);
  });

  test('have the read point of the beginning, and leave nothing open', async () => {
    const { db, groups } = await filled([300, 300]);
    const found: unknown[] = [];
    for await (const one of groups.countBy('group')) {
      found.push(one);
      if (found.length === 1) await groups.clear();
    }
    expect(found).toStrictEqual([
      [0, 300],
      [1, 300],
    ]);
    await groups.insert({ id: 1, group: 1, groups: [] });
    for await (const _ of groups.distinct('group')) break;
    await expect
      .poll(async () => {
        const { snapshots, scans } = await db.stats();
        return [snapshots, scans];
      })
      .toStrictEqual([0, 0]);
  });

  test('in a transaction see its writes, and conflict with a new value, not with one more entry of a value', async () => {
    const { db, groups } = await filled([300, 1]);
    let runs = 0;
    const found = async (meanwhile: () => Promise<unknown>): Promise<unknown> =>
      db.transaction(async (tx) => {
        const inside = groups.in(tx);
        await inside.delete(300);
        const values = await inside.countBy('group').toArray();
        const distinct = await inside.distinct('group').toArray();
        if (runs++ === 0) await meanwhile();
        tx.set('found', distinct);
        return values;
      });
    expect(await found(() => groups.insert({ id: 301, group: 2, groups: [] }))).toStrictEqual([
      [0, 300],
      [2, 1],
    ]);
    expect(runs).toBe(2);
    runs = 0;
    const distinct = await db.transaction(async (tx) => {
      const values = await groups.in(tx).distinct('group').toArray();
      if (runs++ === 0) await groups.insert({ id: 302, group: 0, groups: [] });
      tx.set('found', values);
      return values;
    });
    expect([distinct, runs]).toStrictEqual([[0, 2], 1]);
  });

  test('are refused for no index, and for conditions that they do not have', async () => {
    const { groups } = await filled([1]);
    expect(() => groups.distinct('nothing' as 'group')).toThrow("has no index 'nothing', but 'group'");
    expect(() => groups.distinct(undefined as never)).toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(() => groups.countBy('group', { after: { id: 1 } } as never)).toThrow('There is no option after here');
    const signal = AbortSignal.abort(new Error('gone'));
    await expect(groups.distinct('group', { signal }).toArray()).rejects.toThrow('gone');
  });

  test('are kept up to date by a live query', async () => {
    const { db, groups } = await filled([2, 1]);
    const cloud = db.live((view) => groups.in(view).countBy('group').toArray(), { prefix: ['groups'] });
    const stop = cloud.subscribe(() => undefined);
    await expect
      .poll(() => cloud.value)
      .toStrictEqual([
        [0, 2],
        [1, 1],
      ]);
    await groups.delete(2);
    await expect.poll(() => cloud.value).toStrictEqual([[0, 2]]);
    stop();
  });
});

describe('a collection in a view', () => {
  test('is apart from that of the same name in another view, also in one transaction', async () => {
    const db = await openAsync();
    const teams = [db, db.at(['team', 1]), db.at(['team', '1'])].map((view) => ({ view, notes: notesOf(view) }));
    for (const [i, { notes }] of teams.entries()) await notes.insert(note(i, { title: 'Same' }));
    await db.transaction(async (tx) => {
      for (const [i, { notes }] of teams.entries()) await notes.in(tx).insert(note(10 + i));
    });
    const [, first] = teams as [unknown, { view: View<Key, unknown>; notes: Notes }];
    // A transaction of one view, and a snapshot of another.
    await first.view.transaction((tx) => Promise.all(teams.map(({ notes }, i) => notes.in(tx).insert(note(20 + i)))));
    await using snapshot = first.view.snapshot();
    for (const [i, { notes }] of teams.entries()) {
      expect(await ids(notes.in(snapshot).find('title'))).toStrictEqual([10 + i, 20 + i, i]);
      expect(await notes.check()).toMatchObject({ ok: true, documents: 3 });
    }
    expect(await db.get(['team', 1, 'notes', 'doc', 1])).toStrictEqual(note(1, { title: 'Same' }));
    expect(await first.view.get(first.notes.keyOf(1))).toStrictEqual(note(1, { title: 'Same' }));
    await expect(first.notes.insert(note(5, { title: 'same' }))).rejects.toThrow(
      expect.objectContaining({ conflict: expect.objectContaining({ key: ['notes', 'by', 'title', 'same'] }) }),
    );
  });

  test('has its indexes built, and defined anew, without those of others', async () => {
    const db = await openAsync();
    const view = db.at(['team', 1]);
    const [inside, outside] = [notesOf(view), notesOf(db)];
    await Promise.all([inside.insert(note(1)), outside.insert(note(2))]);
    const later = collection<Note>()(view, 'notes', { key: 'id', indexes: { length: ({ title }) => title.length } });
    expect(await later.countBy('length').toArray()).toStrictEqual([[6, 1]]);
    await expect(inside.insert(note(3))).rejects.toThrow(code('VARVE_VERSION'));
    await outside.insert(note(3));
    expect(await ids(outside.find('title'))).toStrictEqual([2, 3]);
    // The store's reserved keys are left.
    await view.clear();
    await later.insert(note(4));
    expect(await view.count()).toBe(2);
  });

  test('is refused a transaction of another store', async () => {
    const notes = notesOf(await openAsync());
    const other = await openAsync();
    await expect(other.transaction((tx) => notes.in(tx).insert(note(1)))).rejects.toThrow(
      code('VARVE_INVALID_ARGUMENT'),
    );
  });
});
