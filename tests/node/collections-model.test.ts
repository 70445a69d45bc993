// Random operations on a collection, compared with a model in memory: after each operation, every document and every entry of every index
// is compared. Then several clients at once, with conditions that must be true however their calls interleave.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareKeys } from '../../js/src/collections/key.ts';
import { expectKept, ids, type Note, type Notes, note, notesOf } from './support/notes.ts';
import { openAsync, openTabs } from './support/stores.ts';

/** Few keys and values, so that documents collide. */
const ID = fc.integer({ min: 0, max: 7 });
const TAG = fc.constantFrom('', 'a', 'ab', 'b', '\u{10ffff}', 'é', '\uffff', '𐀀');
const NAME = fc.constantFrom('x', 'y', 'z', 'w', 'v', 'u');
const ALIASES = fc.option(fc.array(fc.constantFrom('p', 'q', 'r'), { maxLength: 2 }), { nil: undefined, freq: 4 });
const EDITED = fc.integer({ min: -3, max: 3 }).map((ms) => new Date(ms));
const NOTE: fc.Arbitrary<Note> = fc.record(
  {
    id: ID,
    title: NAME,
    tags: fc.array(TAG, { maxLength: 3 }),
    folder: fc.option(TAG, { nil: undefined }),
    edited: EDITED,
    aliases: ALIASES,
  },
  { noNullPrototype: true },
);
const PATCH: fc.Arbitrary<Partial<Note>> = fc.record(
  { title: NAME, tags: fc.array(TAG, { maxLength: 3 }), folder: TAG, edited: EDITED, aliases: ALIASES },
  { requiredKeys: [], noNullPrototype: true },
);

type Step =
  | { readonly type: 'insert' | 'put'; readonly note: Note }
  | { readonly type: 'insertMany'; readonly notes: readonly Note[] }
  | { readonly type: 'update'; readonly id: number; readonly patch: Partial<Note> }
  | { readonly type: 'delete'; readonly id: number }
  | { readonly type: 'clear' };

const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('insert' as const), note: NOTE }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('put' as const), note: NOTE }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('insertMany' as const), notes: fc.array(NOTE, { maxLength: 3 }) }),
  },
  { weight: 5, arbitrary: fc.record({ type: fc.constant('update' as const), id: ID, patch: PATCH }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('delete' as const), id: ID }) },
  { weight: 1, arbitrary: fc.constant({ type: 'clear' as const }) },
);

/** Documents by key. It refuses what unique indexes refuse. */
class Model {
  notes = new Map<number, Note>();

  /** Applies a step; returns the answer of the collection, 'conflict' for a refusal. */
  apply(step: Step): unknown {
    switch (step.type) {
      case 'insert':
        return this.notes.has(step.note.id) ? 'conflict' : this.#put(step.note, step.note.id);
      case 'put':
        return this.#put(step.note, step.note.id);
      case 'insertMany': {
        const before = new Map(this.notes);
        const results = step.notes.map((one) => this.apply({ type: 'insert', note: one }));
        if (!results.includes('conflict')) return results;
        this.notes = before;
        return 'conflict';
      }
      case 'update': {
        const old = this.notes.get(step.id);
        return old === undefined ? undefined : this.#put({ ...old, ...step.patch }, { ...old, ...step.patch });
      }
      case 'delete':
        return this.notes.delete(step.id);
      case 'clear':
        this.notes.clear();
        return undefined;
    }
  }

  #put(next: Note, answer: unknown): unknown {
    const names = new Set(next.aliases);
    for (const other of this.notes.values()) {
      if (other.id === next.id) continue;
      if (other.title === next.title || other.aliases?.some((alias) => names.has(alias))) return 'conflict';
    }
    this.notes.set(next.id, next);
    return answer;
  }
}

type Writer = Pick<Notes, 'insert' | 'insertMany' | 'put' | 'update' | 'delete' | 'clear'>;

function run(step: Step, notes: Writer): Promise<unknown> {
  switch (step.type) {
    case 'insert':
      return notes.insert(step.note);
    case 'put':
      return notes.put(step.note);
    case 'insertMany':
      return notes.insertMany(step.notes);
    case 'update':
      return notes.update(step.id, step.patch);
    case 'delete':
      return notes.delete(step.id);
    case 'clear':
      return notes.clear();
  }
}

const orConflict = (error: { readonly code?: unknown }): unknown => {
  if (error.code !== 'VARVE_CONFLICT') throw error;
  return 'conflict';
};

/** Compares the documents that are found with those that a model would find. */
async function expectFound(notes: Notes, model: Model): Promise<void> {
  const all = [...model.notes.values()].sort((a, b) => a.id - b.id);
  expect(await notes.find().toArray()).toStrictEqual(all);
  expect(await notes.count()).toBe(all.length);
  const byTag = (tag: string): number[] => all.filter(({ tags }) => tags.includes(tag)).map(({ id }) => id);
  for (const tag of ['', 'a', '\u{10ffff}']) expect(await ids(notes.find('tags', tag))).toStrictEqual(byTag(tag));
  const begun = all.filter(({ tags }) => tags.some((tag) => tag.startsWith('a'))).map(({ id }) => id);
  expect((await ids(notes.find('tags', { prefix: 'a' }))).sort()).toStrictEqual(begun);
  expect(await notes.count('tags', { prefix: 'a' })).toBe(begun.length);
  const tags = [...new Set(all.flatMap(({ tags }) => tags))].sort(compareKeys);
  expect(await notes.distinct('tags').toArray()).toStrictEqual(tags);
  const counts = tags.map((tag) => [tag, byTag(tag).length]).reverse();
  expect(await notes.countBy('tags', { reverse: true }).toArray()).toStrictEqual(counts);
  const early = all.filter(({ edited }) => edited.getTime() <= 0).sort((a, b) => +a.edited - +b.edited || a.id - b.id);
  expect(await notes.find('edited', { lte: new Date(0) }).toArray()).toStrictEqual(early);
  const placed = all.filter(({ folder }) => folder === 'a').sort((a, b) => +b.edited - +a.edited || b.id - a.id);
  expect(await notes.find('place', { prefix: ['a'], reverse: true }).toArray()).toStrictEqual(placed);
  for (const alias of ['p', 'q']) {
    expect(await notes.first('alias', alias)).toStrictEqual(all.find(({ aliases }) => aliases?.includes(alias)));
  }
}

test.each([
  ['each by itself', false],
  ['each in a transaction', true],
])('random operations, %s, leave what a model of them leaves', { timeout: 300_000 }, async (_, isInTransaction) => {
  const store = await openAsync();
  let number = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 25 }), async (steps) => {
      const name = `notes ${number++}`;
      // Every other collection is in a view.
      const db = store.at(number % 2 === 0 ? [] : ['team', number]);
      const notes = notesOf(db, name);
      const model = new Model();
      for (const step of steps) {
        const answer = isInTransaction ? store.transaction((tx) => run(step, notes.in(tx))) : run(step, notes);
        expect(await answer.catch(orConflict), JSON.stringify(step)).toStrictEqual(model.apply(step));
        await expectKept(db, model.notes.values(), name);
      }
      await expectFound(notes, model);
    }),
    { numRuns: 30 },
  );
});

test('random operations together in one transaction leave what a model leaves', { timeout: 300_000 }, async () => {
  const db = await openAsync();
  let number = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(STEP, { maxLength: 8 }),
      fc.array(STEP, { minLength: 1, maxLength: 12 }),
      async (before, steps) => {
        const name = `notes ${number++}`;
        const notes = notesOf(db, name);
        const model = new Model();
        for (const step of before) {
          await run(step, notes).catch(orConflict);
          model.apply(step);
        }
        await notes.ready();
        await db.transaction(async (tx) => {
          const inside = notes.in(tx);
          // All are called at once, and they still run one after another.
          const answers = await Promise.all(steps.map((step) => run(step, inside).catch(orConflict)));
          const isUpdating = steps.some(({ type }) => type === 'update');
          const expected = steps.map((step) => model.apply(step));
          if (!isUpdating) expect(answers).toStrictEqual(expected);
          else await rerun(steps, inside, model);
          expect((await inside.find().toArray()).length).toBe(model.notes.size);
          expect(await inside.count('edited')).toBe(model.notes.size);
        });
        await expectKept(db, model.notes.values(), name);
      },
    ),
    { numRuns: 30 },
  );
});

/** Calls after an update do not wait for what the update reads. So the steps run once more, awaited, from an empty collection. */
async function rerun(steps: readonly Step[], inside: Writer, model: Model): Promise<void> {
  model.notes.clear();
  await inside.clear();
  for (const step of steps) expect(await run(step, inside).catch(orConflict)).toStrictEqual(model.apply(step));
}

test('documents and indexes agree after several clients wrote at once', { timeout: 300_000 }, async () => {
  let conflicts = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(STEP, { maxLength: 15 }), { minLength: 2, maxLength: 3 }), async (scripts) => {
      const stores = await openTabs(scripts.length);
      const clients = stores.map((db) => notesOf(db));
      await Promise.all(
        scripts.map(async (steps, client) => {
          for (const step of steps) {
            const answer = await run(step, clients[client] as Notes).catch(orConflict);
            if (answer === 'conflict') conflicts++;
          }
        }),
      );
      const [db] = stores;
      const notes = clients[0] as Notes;
      const all = await notes.find().toArray();
      // Entries follow from the documents. If two entries had one place, there would be one too few.
      await expectKept(db as NonNullable<typeof db>, all);
      expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
    }),
    { numRuns: 15 },
  );
  expect(conflicts).toBeGreaterThan(0);
});

test('of many documents with one value for a unique index, one is written', async () => {
  const stores = await openTabs(2);
  const clients = stores.map((db) => notesOf(db));
  const racing = Array.from({ length: 20 }, (_, i) => {
    const notes = clients[i % 2] as Notes;
    const one = note(i, { title: 'Same', tags: ['t'] });
    const ways = [
      () => notes.insert(one),
      () => notes.put(one),
      () => (stores[i % 2] as (typeof stores)[0]).transaction((tx) => notes.in(tx).insert(one)),
    ];
    return (ways[i % 3] as () => Promise<number>)();
  });
  const results = await Promise.allSettled(racing);
  const won = results.filter((result) => result.status === 'fulfilled');
  const codes = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []));
  expect([won.length, new Set(codes)]).toStrictEqual([1, new Set(['VARVE_CONFLICT'])]);
  const winner = (won[0] as PromiseFulfilledResult<number>).value;
  await expectKept(stores[1] as (typeof stores)[0], [note(winner, { title: 'Same', tags: ['t'] })]);
});

test('no update of a document is lost', async () => {
  const stores = await openTabs(3);
  const clients = stores.map((db) => notesOf(db));
  await clients[0]?.insert(note(1));
  const grow = (notes: Notes, tag: string): Promise<unknown> =>
    notes.update(1, (old) => ({ ...old, tags: [...old.tags, tag] }));
  await Promise.all(
    clients.map(async (notes, client) => {
      for (let i = 0; i < 10; i++) await grow(notes, `${client}.${i}`);
    }),
  );
  const found = await clients[0]?.get(1);
  expect(found?.tags.length).toBe(30);
  await expectKept(stores[0] as (typeof stores)[0], [found as Note]);
});
