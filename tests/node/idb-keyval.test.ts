/**
 * `varve/idb-keyval` beside idb-keyval over an IndexedDB in memory: the same calls must have the same results and the same errors.
 */

import { IDBFactory } from 'fake-indexeddb';
import * as original from 'idb-keyval';
import { afterAll, beforeAll, beforeEach, expect, expectTypeOf, test, vi } from 'vitest';
import { VarveError } from '../../js/src/errors.ts';
import * as ours from '../../js/src/idb-keyval.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { goneOnce } from './support/gone.ts';
import { Random } from './support/random.ts';

const opened: string[] = [];
let failure: Error | undefined;
let db: Store<Key, unknown>;

vi.mock('../../js/src/index.ts', () => ({
  open: async (name: string) => {
    opened.push(name);
    if (failure !== undefined) throw failure;
    return db;
  },
}));

/** The two, each with a store of its own. */
const sides = (): [typeof original, original.UseStore, typeof ours, ours.UseStore] => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  return [original, original.createStore('db', 'kv'), ours, ours.createStore(db, 'kv')];
};

const openMemory = (): Promise<Store<Key, unknown>> =>
  openStore<Key, unknown>('test', { wasm, storage: 'memory' }, spawnServer);

beforeAll(async () => {
  db = await openMemory();
});

beforeEach(async () => {
  await db.clear();
});

afterAll(async () => {
  vi.unstubAllGlobals();
  await db.close();
});

/** The result of a call, or the name of its error. */
const outcome = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (value) => ({ value }),
    (error: Error) => ({ error: error.name }),
  );

const bytes = (...content: number[]): ArrayBuffer => Uint8Array.from(content).buffer;

/** Keys of every type, in no order. (The IndexedDB in memory takes empty bytes for a detached buffer.) */
const KEYS: ours.IdbKey[] = [
  ...['', 'a', 'a\0', 'ab', 'b', 'é', '\ud7ff', '\ue000', '\uffff', '\ud800', '\udc00', '\u{10000}', '\u{10ffff}'],
  ...[0, 1, -1, 1.5, Number.MAX_VALUE, Number.MIN_VALUE, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  ...[new Date(0), new Date(-1), new Date(8.64e15)],
  ...[bytes(0), bytes(255), bytes(0, 0)],
  ...[[], [[]], ['a'], ['a', 1], [1], [new Date(1)], [bytes(1)], [[], 'a'], [['a', ['b']]]],
];

/** Values that are no keys. */
const NO_KEYS: unknown[] = [
  undefined,
  null,
  true,
  Number.NaN,
  new Date(Number.NaN),
  {},
  1n,
  () => 1,
  [1, [undefined]],
  new Array(1),
];

test('keys of every type have the order of IndexedDB and come back', async () => {
  const [theirs, theirStore, mine, myStore] = sides();
  const pairs = KEYS.map((key, index): [ours.IdbKey, number] => [key, index]);
  await theirs.setMany(pairs as [IDBValidKey, number][], theirStore);
  await mine.setMany(pairs, myStore);
  expect(await mine.keys(myStore)).toEqual(await theirs.keys(theirStore));
  expect(await mine.values(myStore)).toEqual(await theirs.values(theirStore));
  expect(await mine.entries(myStore)).toEqual(await theirs.entries(theirStore));
  expect(await mine.getMany(KEYS, myStore)).toEqual(KEYS.map((_, index) => index));
  expect((await mine.keys(myStore)).filter((key) => key instanceof ArrayBuffer)).toHaveLength(3);
});

// Story: the entry of a store whose key is the part itself was listed as `undefined`, broke `values`, and was deleted by `clear`.
test('an entry of the store with the name of the part is none of it', async () => {
  const settings = ours.createStore(db, 'settings');
  await db.set(['settings'], { theme: 'dark' });
  await ours.set(-1, 'one', settings);
  expect(await ours.keys(settings)).toEqual([-1]);
  expect(await ours.values(settings)).toEqual(['one']);
  expect(await ours.entries(settings)).toEqual([[-1, 'one']]);
  await ours.clear(settings);
  expect(await ours.keys(settings)).toEqual([]);
  expect(await db.get(['settings'])).toEqual({ theme: 'dark' });
});

test('views of bytes are keys with the bytes of the view', async () => {
  const [, , mine, myStore] = sides();
  await mine.set(new DataView(bytes(1, 2, 3), 1, 1), 'two', myStore);
  expect(await mine.get(Uint8Array.of(2), myStore)).toBe('two');
  await mine.set(bytes(), 'none', myStore);
  expect(await mine.entries(myStore)).toEqual([
    [bytes(), 'none'],
    [bytes(2), 'two'],
  ]);
});

test('an invalid key is a DataError, in every function, and nothing is written', async () => {
  const [theirs, theirStore, mine, myStore] = sides();
  const cyclic: unknown[] = [];
  cyclic.push([cyclic]);
  for (const key of [...NO_KEYS, cyclic] as never[]) {
    for (const call of [
      (its: typeof ours, store: never) => its.get(key, store),
      (its: typeof ours, store: never) => its.set(key, 1, store),
      (its: typeof ours, store: never) => its.getMany([key], store),
      (its: typeof ours, store: never) => its.update(key, () => 1, store),
      (its: typeof ours, store: never) => its.del(key, store),
      (its: typeof ours, store: never) => its.delMany([key], store),
      (its: typeof ours, store: never) => its.setMany([[key, 1]], store),
    ]) {
      const theirOutcome = await outcome(call(theirs as never, theirStore as never));
      expect(theirOutcome).toEqual({ error: 'DataError' });
      expect(await outcome(call(mine, myStore as never))).toEqual(theirOutcome);
    }
  }
  await expect(
    mine.setMany(
      [
        ['a', 1],
        [cyclic as never, 2],
      ],
      myStore,
    ),
  ).rejects.toBeInstanceOf(DOMException);
  expect(await mine.keys(myStore)).toEqual([]);
});

test('keys of the sizes in the guide always fit, and longer ones are refused', async () => {
  const [, , mine, myStore] = sides();
  const nested = (depth: number): ours.IdbKey => (depth === 0 ? 'a' : [nested(depth - 1)]);
  for (const key of [
    'k'.repeat(16_000),
    '漢'.repeat(16_000),
    '\0'.repeat(16_000),
    new ArrayBuffer(32_000),
    nested(15),
  ]) {
    await mine.set(key, 1, myStore);
    expect(await mine.get(key, myStore)).toBe(1);
  }
  for (const key of ['k'.repeat(22_000), '漢'.repeat(33_000), new ArrayBuffer(66_000), nested(16)]) {
    await expect(mine.set(key, 1, myStore)).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY' });
  }
});

test('values that cannot be cloned are a DataCloneError; all others come back', async () => {
  const [theirs, theirStore, mine, myStore] = sides();
  const values = [
    undefined,
    null,
    { a: [1, new Date(3), new Map([[1, new Set(['x'])]])] },
    1n,
    /a/g,
    bytes(1),
    () => 1,
    Symbol('s'),
  ];
  for (const value of values) {
    for (const call of [
      (its: typeof ours, store: never) => its.set('a', value, store),
      (its: typeof ours, store: never) => its.update('b', () => value, store),
      (its: typeof ours, store: never) => its.getMany(['a', 'b', 'absent'], store),
      (its: typeof ours, store: never) => its.keys(store),
    ]) {
      expect(await outcome(call(mine, myStore as never))).toEqual(
        await outcome(call(theirs as never, theirStore as never)),
      );
    }
  }
  await expect(mine.update('b', async () => 1, myStore)).rejects.toMatchObject({ name: 'DataCloneError' });
});

test('the same calls have the same results', async () => {
  const [theirs, theirStore, mine, myStore] = sides();
  const random = new Random(11);
  const refusal = new Error('of the updater');
  for (let i = 0; i < 150; i++) {
    const [a, b] = [random.pick(KEYS), random.pick(KEYS)];
    const call = random.pick([
      (its: typeof ours, store: never) => its.set(a, i, store),
      (its: typeof ours, store: never) =>
        its.setMany(
          [
            [a, i],
            [b, -i],
            [a, i + 1],
          ],
          store,
        ),
      (its: typeof ours, store: never) => its.get(a, store),
      (its: typeof ours, store: never) => its.getMany([a, b, a], store),
      (its: typeof ours, store: never) => its.update<number>(a, (n = 0) => n + 1, store),
      (its: typeof ours, store: never) =>
        its.update(
          a,
          () => {
            throw refusal;
          },
          store,
        ),
      (its: typeof ours, store: never) => its.del(a, store),
      (its: typeof ours, store: never) => its.delMany([a, b], store),
      (its: typeof ours, store: never) => its.setMany([], store),
      (its: typeof ours, store: never) => its.delMany([], store),
      (its: typeof ours, store: never) => its.entries(store),
      (its: typeof ours, store: never) => (i % 10 === 0 ? its.clear(store) : its.values(store)),
    ]);
    expect(await outcome(call(mine, myStore as never)), `call ${i}`).toEqual(
      await outcome(call(theirs as never, theirStore as never)),
    );
  }
  expect(await mine.entries(myStore)).toEqual(await theirs.entries(theirStore));
});

test('calls of one turn take effect in their order; updates of one key lose nothing', async () => {
  const [, , mine, myStore] = sides();
  const calls = [mine.get('n', myStore), mine.set('n', 1, myStore), mine.get('n', myStore), mine.del('n', myStore)];
  expect(await Promise.all(calls)).toEqual([undefined, undefined, 1, undefined]);
  await Promise.all(Array.from({ length: 20 }, () => mine.update<number>('n', (n = 0) => n + 1, myStore)));
  expect(await mine.get('n', myStore)).toBe(20);
});

// An update that met a conflict once ran again after a later call of the same tab: what `clear` had deleted came back.
test.each<[string, (its: typeof ours, store: never) => Promise<unknown>]>([
  ['clear', (its, store) => its.clear(store)],
  ['del', (its, store) => its.del('cart', store)],
  ['delMany', (its, store) => its.delMany(['cart'], store)],
  ['set', (its, store) => its.set('cart', ['new'], store)],
  ['setMany', (its, store) => its.setMany([['cart', ['new']]], store)],
  ['get', (its, store) => its.get('cart', store)],
  ['keys', (its, store) => its.keys(store)],
  ['update', (its, store) => its.update<string[]>('cart', (cart = []) => [...cart, 'c'], store)],
])('update, then %s in the same turn, take effect in this order', async (_, later) => {
  const [theirs, theirStore, mine, myStore] = sides();
  const run = async (its: typeof ours, store: never): Promise<unknown> => {
    await its.set('cart', ['a'], store);
    const updating = its.update<string[]>('cart', (cart = []) => [...cart, 'b'], store);
    const found = later(its, store);
    return [await updating, await found, await its.entries(store)];
  };
  expect(await run(mine, myStore as never)).toEqual(await run(theirs as never, theirStore as never));
});

test('calls that nobody waits for have the results of the original, also after an updater that throws', async () => {
  const [theirs, theirStore, mine, myStore] = sides();
  const run = (its: typeof ours, store: never): Promise<unknown>[] => {
    const random = new Random(7);
    return Array.from({ length: 300 }, (_, i) => {
      const key = random.below(4);
      const call = random.pick([
        () => its.set(key, i, store),
        () => its.get(key, store),
        () => its.update<number>(key, (n = 0) => n + 1, store),
        () =>
          its.update(
            key,
            () => {
              throw new RangeError('of the updater');
            },
            store,
          ),
        () => its.del(key, store),
        () => its.entries(store),
        () => (i % 10 === 0 ? its.clear(store) : its.update<number>(key, (n = 0) => n * 2, store)),
      ]);
      return outcome(call());
    });
  };
  const expected = await Promise.all(run(theirs as never, theirStore as never));
  expect(await Promise.all(run(mine, myStore as never))).toEqual(expected);
});

test('stores are opened by name at the first use, once; after a failure the next call tries again', async () => {
  expect(opened).toEqual([]);
  failure = new Error('locked');
  const [first, second] = [ours.createStore('app', 'first'), ours.createStore('app', 'second')];
  await expect(ours.set('a', 1, first)).rejects.toBe(failure);
  failure = undefined;
  await Promise.all([ours.set('a', 1, first), ours.set('a', 2, second), ours.set('a', 3)]);
  await ours.clear(first);
  expect([await ours.keys(first), await ours.get('a', second), await ours.get('a')]).toEqual([[], 2, 3]);
  expect(opened).toEqual(['app', 'app', 'keyval-store']);
});

test.each<[string, (store: Store<Key, unknown>) => unknown]>([
  ['was closed', (store) => store.close()],
  ['failed', (store) => store.client.fail(new VarveError('VARVE_POISONED', 'Close the store and open it again.'))],
])('a store opened by name that %s is opened again by the next call, once', async (how, end) => {
  const store = ours.createStore(how, 'kv');
  const kept = db;
  opened.length = 0;
  db = await openMemory();
  await ours.set('a', 1, store);
  await end(db);
  db = kept;
  await Promise.all([ours.set('a', 2, store), ours.set('b', 3, store)]);
  expect(await ours.getMany(['a', 'b'], store)).toEqual([2, 3]);
  expect(opened).toEqual([how, how]);
});

test('it has the functions of the original, which take the same arguments', () => {
  const { promisifyRequest: _, ...functions } = original;
  expect(Object.keys(ours).sort()).toEqual([...Object.keys(functions), 'migrate'].sort());
  expectTypeOf<IDBValidKey>().toExtend<ours.IdbKey>();
});

test('reads whose read point is gone, because another tab leads the store, are made again', async () => {
  const [, , { set, get, getMany, keys, values, entries }, store] = sides();
  await set('a', 1, store);
  const failed = goneOnce();
  expect(await get('a', store)).toBe(1);
  expect(await getMany(['a'], store)).toEqual([1]);
  expect([await keys(store), await values(store)]).toEqual([['a'], [1]]);
  expect(await entries(store)).toEqual([['a', 1]]);
  expect(failed()).toBe(5);
  vi.restoreAllMocks();
});
