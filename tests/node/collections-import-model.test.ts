// Random documents, in the whole store or in a view, updates, exports, more updates, and imports. The imports go over existing documents or
// into an emptied store, whole or interrupted and resumed. One tab imports while another uses the collection. Afterwards every index
// answers the same as a filter over the documents, and the check agrees. The check lists every unique value that two documents have by
// then. Once these are mended, the indexes are also right.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inlineEngine } from '../../js/src/server/inline.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { View } from '../../js/src/store/view.ts';
import { LossyStorage } from '../../js/src/testing.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { boundaries, bytesOf, chunks } from './support/exports.ts';
import { expectKept, ids, type Note, type Notes, note, notesOf } from './support/notes.ts';
import { collect, openTabs } from './support/stores.ts';

type Db = Store<Key, unknown>;
type Part = View<Key, unknown>;
type Bytes = Uint8Array<ArrayBuffer>;

const TAG = fc.constantFrom('a', 'ab', 'b', '');
const NAME = fc.constantFrom('p', 'q', 'r', 's', 't', 'u');
const CONTENT = fc.record(
  {
    title: fc.tuple(NAME, fc.integer({ min: 0, max: 3 })).map(([name, n]) => `${name}${n}`),
    tags: fc.array(TAG, { maxLength: 3 }),
    folder: fc.option(TAG, { nil: undefined }),
    edited: fc.integer({ min: -2, max: 2 }).map((ms) => new Date(ms)),
    aliases: fc.option(fc.array(NAME, { maxLength: 1 }), { nil: undefined, freq: 2 }),
    // Some documents fill a block of the export alone.
    body: fc.option(fc.constant('x'.repeat(150_000)), { nil: undefined, freq: 1 }),
  },
  { noNullPrototype: true },
);

/** A call of one tab: a put, or a deletion. */
const STEP = fc.record({
  tab: fc.integer({ min: 0, max: 1 }),
  id: fc.integer({ min: 0, max: 9 }),
  content: fc.option(CONTENT, { nil: undefined, freq: 4 }),
});
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

const STEPS = fc.array(STEP, { maxLength: 12 });

/** The prefix of the collection's view. */
const PREFIX = fc.constantFrom<readonly Key[]>([], ['team', 7]);

/** How an import runs: over existing documents or not, interrupted after some of its blocks, and what the other tab does meanwhile. */
const IMPORT = fc.record({
  isMerge: fc.boolean(),
  isRangeOnly: fc.boolean(),
  cut: fc.option(fc.nat(), { nil: undefined }),
  meanwhile: STEPS,
});

const IMPORTS = fc.array(IMPORT, { minLength: 1, maxLength: 3 });

const refused = (error: { readonly code?: unknown }): void => {
  if (error.code !== 'VARVE_CONFLICT') throw error;
};

async function run(steps: readonly Step[], tabs: readonly Notes[]): Promise<void> {
  for (const { tab, id, content } of steps) {
    const notes = tabs[tab] as Notes;
    await (content === undefined ? notes.delete(id) : notes.put({ id, ...content })).catch(refused);
  }
}

/** Imports it. The first time the import is interrupted behind a block, if there are so many. */
async function restore(db: Db, bytes: Bytes, merge: boolean, cut: number | undefined, meanwhile: () => Promise<void>) {
  if (cut !== undefined) {
    const ends = boundaries(bytes);
    const part = bytes.slice(0, ends[cut % ends.length]);
    if (part.length < bytes.length) {
      await db.import(chunks(part, 65_536), { merge }).catch((error) => expect(error.code).toBe('VARVE_CORRUPT'));
      await meanwhile();
    }
  }
  // If the other tab wrote into an emptied store meanwhile, the import has to merge.
  await Promise.all([db.import(chunks(bytes, 65_536), { merge: true }), meanwhile()]);
}

/** The documents as they are in the store. */
const stored = (db: Part): Promise<Note[]> => collect(db.values({ prefix: ['notes', 'doc'] })) as Promise<Note[]>;

/** The conflicts that a check must list: each document with a unique value that an earlier document has. */
function conflictsOf(all: readonly Note[]): unknown[] {
  const owners = new Map<string, number>();
  return all.flatMap(({ id, title, aliases = [] }) => {
    const values = [['title', title.toLowerCase()], ...[...new Set(aliases)].map((alias) => ['alias', alias])];
    return values.flatMap(([index, value]) => {
      const other = owners.get(`${index} ${value}`);
      if (other === undefined) owners.set(`${index} ${value}`, id);
      return other === undefined ? [] : [{ kind: 'conflict', index, value, key: id, other }];
    });
  });
}

/** Corrects the values that two documents must not share; returns how many conflicts there were. */
async function mend(db: Part, notes: Notes): Promise<number> {
  const conflicts = conflictsOf(await stored(db));
  const { ok, differences, found } = await notes.check();
  expect({ ok, differences, found }).toStrictEqual({
    ok: conflicts.length === 0,
    differences: conflicts,
    found: conflicts.length,
  });
  if (conflicts.length === 0) return 0;
  await expect(notes.count('title')).rejects.toThrow(expect.objectContaining({ code: 'VARVE_CONFLICT' }));
  for (const key of new Set(differences.map((one) => one.key))) await db.delete(notes.keyOf(key));
  return conflicts.length;
}

async function expectIndexed(db: Part, notes: Notes): Promise<void> {
  const all = await stored(db);
  const having = (isWanted: (one: Note) => boolean): number[] => all.filter(isWanted).map(({ id }) => id);
  for (const tag of ['a', 'ab', 'b', '']) {
    expect(await ids(notes.find('tags', tag))).toStrictEqual(having(({ tags }) => tags.includes(tag)));
    expect(await notes.count('tags', tag)).toBe(having(({ tags }) => tags.includes(tag)).length);
    const placed = await ids(notes.find('place', { prefix: [tag] }));
    expect(placed.sort()).toStrictEqual(having(({ folder }) => folder === tag).sort());
  }
  const early = having(({ edited }) => edited.getTime() < 0);
  expect((await notes.keys('edited', { lt: new Date(0) }).toArray()).sort()).toStrictEqual(early.sort());
  for (const { title, ...one } of all)
    expect(await notes.first('title', title.toLowerCase())).toStrictEqual({ title, ...one });
  expect([await notes.count('title'), await notes.count()]).toStrictEqual([all.length, all.length]);
  await expectKept(db, all);
  expect(await notes.check()).toMatchObject({ ok: true, documents: all.length, differences: [] });
}

test('after imports of all kinds every index is that of the documents', { timeout: 300_000 }, async () => {
  let conflicts = 0;
  let interrupted = 0;
  await fc.assert(
    fc.asyncProperty(PREFIX, STEPS, STEPS, IMPORTS, async (prefix, before, after, imports) => {
      const [db, other] = (await openTabs(2)) as [Db, Db];
      const [part, theirs] = [db.at(prefix), other.at(prefix)];
      const tabs = [notesOf(part), notesOf(theirs)] as const;
      await run(before, tabs);
      const whole = await bytesOf(db.export());
      const range = await bytesOf(db.export({ prefix: [...prefix, 'notes', 'doc'] }));
      await run(after, tabs);
      for (const { isMerge, isRangeOnly, cut, meanwhile } of imports) {
        if (!isMerge) await db.clear();
        if (cut !== undefined) interrupted++;
        await restore(db, isRangeOnly ? range : whole, isMerge, cut, () => run(meanwhile, tabs));
        conflicts += await mend(part, tabs[1]);
        await expectIndexed(part, tabs[0]);
      }
      const fresh = (await openTabs(1))[0] as Db;
      await fresh.import(db.export());
      await expectIndexed(fresh.at(prefix), notesOf(fresh.at(prefix)));
      await run(before, [tabs[1], tabs[0]]);
      await expectIndexed(theirs, tabs[1]);
    }),
    { numRuns: 40 },
  );
  expect(conflicts).toBeGreaterThan(0);
  expect(interrupted).toBeGreaterThan(0);
});

test('a loss of power in an import leaves indexes that are right at the next use', { timeout: 120_000 }, async () => {
  const storage = new LossyStorage();
  const opened = async (): Promise<Db> => {
    const options = { storage, wasm, memoryBytes: 2 ** 20 } as const;
    return openStore<Key, unknown>('lossy', options, () => inlineEngine(storage));
  };
  const body = 'x'.repeat(20_000);
  let db = await opened();
  const theirs = Array.from({ length: 60 }, (_, i) => ({ ...note(i, { title: `Back ${i}`, tags: ['back'] }), body }));
  await db.setMany(theirs.map((one) => [['notes', 'doc', one.id], one]));
  const backup = await bytesOf(db.export());
  for (const applied of [1, 2, 3]) {
    await db.clear();
    const notes = notesOf(db);
    await notes.insertMany(
      Array.from({ length: 60 }, (_, i) => note(i, { tags: ['local'] })),
      { durability: 'strict' },
    );
    let blocks = 0;
    const onProgress = (): void => {
      if (++blocks === applied) storage.losePower();
    };
    const importing = db.import(chunks(backup, 65_536), { merge: true, durability: 'strict', onProgress });
    await expect(importing).rejects.toThrow();
    await db.close().catch(() => undefined);
    db = await opened();
    const again = notesOf(db);
    // The first use builds the indexes again. That is a write, after which the import does not continue but begins again.
    const isUsed = applied !== 2;
    if (isUsed) {
      const restored = await again.count('tags', 'back');
      expect([restored > 0, restored < 60]).toStrictEqual([true, true]);
      expect(await again.count('tags', 'local')).toBe(60 - restored);
      await expectIndexed(db, again);
    }
    const { resumedAt } = await db.import(chunks(backup, 65_536), { merge: true });
    expect(resumedAt === 0).toBe(isUsed);
    expect([await again.count('tags', 'back'), await again.count('tags', 'local')]).toStrictEqual([60, 0]);
    await expectIndexed(db, again);
  }
  await db.close();
});
