/**
 * Every call that takes options refuses an unknown option, and does nothing. Calls that take several keys, entries or documents refuse
 * anything that is not a list.
 */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { collection } from '../../js/src/collections.ts';
import { denoKv } from '../../js/src/deno-kv.ts';
import { files } from '../../js/src/fs.ts';
import { bearer, createHandler } from '../../js/src/http.ts';
import { check, deleteStore, listStores, open, repair } from '../../js/src/index.ts';
import {
  deleteStore as deleteInline,
  listStores as listInline,
  open as openInline,
  repair as repairInline,
} from '../../js/src/inline.ts';
import type { Store } from '../../js/src/store/store.ts';
import * as sync from '../../js/src/synchronous.ts';
import { storageContract } from '../../js/src/testing.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { KeptDevices } from './support/kept-devices.ts';

let storage: KeptDevices;
let db: Store<Key, unknown>;
let now: sync.SyncStore<Key, unknown>;

beforeEach(async () => {
  storage = new KeptDevices();
  db = await open('later', { storage, wasm });
  now = await sync.open('now', { storage: new KeptDevices(), wasm });
  await db.set('a', 1);
  now.set('a', 1);
});
afterEach(async () => {
  await db.close();
  await now.close();
});

/** Options with one unknown option; the compiler alone would refuse it. */
const strange = (options: object = {}): never => ({ ...options, lifetime: 5 }) as never;

/** The error of a call, whether it throws, rejects, or fails when it is iterated. */
async function failure(call: () => unknown): Promise<unknown> {
  try {
    const result = call();
    if (result instanceof ReadableStream) await new Response(result).arrayBuffer();
    else if (typeof result === 'object' && result !== null && Symbol.asyncIterator in result)
      await (result as AsyncIterable<unknown>)[Symbol.asyncIterator]().next();
    else await result;
  } catch (error) {
    return error;
  }
  return undefined;
}

async function expectRefused(calls: Record<string, () => unknown>): Promise<void> {
  for (const [name, call] of Object.entries(calls)) {
    const error = await failure(call);
    expect(error, name).toMatchObject({ name: 'VarveError', code: 'VARVE_INVALID_ARGUMENT' });
    expect((error as Error).message, name).toMatch(/^There is no option lifetime here; there is [a-z]/);
  }
}

test('stores: opening, listing, deleting, repairing', async () => {
  await expectRefused({
    open: () => open('new', strange({ storage, wasm })),
    openInline: () => openInline('new', strange({ storage, wasm })),
    openSync: () => sync.open('new', strange({ storage, wasm })),
    listStores: () => listStores(strange({ storage })),
    listStoresSync: () => sync.listStores(strange({ storage })),
    deleteStore: () => deleteStore('later', strange({ storage })),
    deleteStoreSync: () => sync.deleteStore('later', strange({ storage })),
    check: () => check('later', strange({ storage })),
    checkSync: () => sync.check('later', strange({ storage })),
    repair: () => repair('later', strange({ storage })),
    repairSync: () => sync.repair('later', strange({ storage })),
  });
  expect(await listStores({ storage })).toEqual(['later']);
});

test('every entry point refuses options out of range with the same error, before anything is opened', async () => {
  for (const [options, message] of [
    [{ memoryBytes: 10 }, 'memoryBytes is a number of bytes from 1048576 to 2147483648, not 10.'],
    [{ memoryBytes: 2 ** 31 + 1 }, 'memoryBytes is a number of bytes from 1048576 to 2147483648, not 2147483649.'],
    [{ historyBytes: -1 }, 'historyBytes is a number of bytes from 0, not -1.'],
    [{ lockTimeout: Number.NaN }, 'lockTimeout is a number of milliseconds from 0 to 2147483647, not NaN.'],
    [{ lockTimeout: 2 ** 31 }, 'lockTimeout is a number of milliseconds from 0 to 2147483647, not 2147483648.'],
    [{ durability: 'safe' }, "durability is 'memory', 'relaxed' or 'strict', not 'safe'."],
    [{ version: 0 }, 'version is an integer from 1, not 0.'],
    [{ keys: {} }, 'keys is a codec: an object with a name, encode(value) and decode(bytes).'],
  ] as [object, string][]) {
    for (const openStore of [open, openInline, sync.open]) {
      const refused = openStore('new', { storage, wasm, ...options } as never);
      await expect(refused).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT', message });
    }
  }
  await expect(open('new', { storage, wasm, cache: {} as never })).rejects.toMatchObject({
    code: 'VARVE_INVALID_ARGUMENT',
    message: 'cache is true or false, not [object Object].',
  });
  expect(await listStores({ storage })).toEqual(['later']);
});

test('options of one entry point are none of another that could not keep them', async () => {
  for (const options of [{ worker: () => undefined }, { cache: true }, { compactor: true }]) {
    const [option = ''] = Object.keys(options);
    const refused = { code: 'VARVE_INVALID_ARGUMENT', message: expect.stringContaining(`no option ${option} `) };
    const settings = { storage, wasm, ...options } as never;
    if (option !== 'cache') await expect(openInline('new', settings)).rejects.toMatchObject(refused);
    if (option !== 'compactor') await expect(sync.open('new', settings)).rejects.toMatchObject(refused);
  }
});

test('a signal ends calls of the synchronous store, too', async () => {
  const reason = new Error('enough');
  const signal = AbortSignal.abort(reason);
  for (const call of [
    () => now.get('a', { signal }),
    () => now.getEntry('a', { signal }),
    () => now.getMany([], { signal }),
    () => now.has('a', { signal }),
    () => now.hasMany([], { signal }),
    () => now.transaction((tx) => tx.get('a', { signal })),
    () => now.set('b', 1, { signal }),
    () => now.set('b', 1, { signal, expiresIn: 5 }),
    () => now.setMany([['b', 1]], { signal }),
    () => now.update('b', () => 1, { signal }),
    () => now.delete('a', { signal }),
    () => now.delete('a', { signal, ifSequence: 1 }),
    () => now.deleteRange({ gte: 'a' }, { signal }),
    () => now.clear({ signal }),
    () => now.batch().set('b', 1).commit({ signal }),
    () => now.transaction((tx) => tx.set('b', 1), { signal }),
    () => now.keys({ signal }),
    () => now.count({ signal }),
    () => now.commit({ signal }),
    () => now.flush({ signal }),
    () => now.transaction((tx) => void tx.keys({ signal })),
    () => now.transaction((tx) => void tx.count({ signal })),
  ]) {
    expect(call, String(call)).toThrow(reason);
  }
  expect([...now.entries()]).toEqual([['a', 1]]);

  const controller = new AbortController();
  const during = { signal: controller.signal };
  now.set('b', 2);
  const scan = now.keys(during);
  expect(scan.next().value).toBe('a');
  const abort = (): number => {
    controller.abort(reason);
    return 3;
  };
  expect(() => now.update('b', abort, during)).toThrow(reason);
  expect(() => scan.next()).toThrow(reason);
  expect(scan.next()).toMatchObject({ done: true });
  expect(now.get('b')).toBe(2);
});

test('the asynchronous store', async () => {
  const before = (await db.stats()).sequence;
  await expectRefused({
    get: () => db.get('a', strange()),
    getMany: () => db.getMany(['a'], strange()),
    getEntry: () => db.getEntry('a', strange()),
    has: () => db.has('a', strange()),
    hasMany: () => db.hasMany(['a'], strange()),
    hasNone: () => db.hasMany([], strange()),
    set: () => db.set('b', 1, strange()),
    setFor: () => db.set('b', 1, strange({ expiresIn: 5, durability: 'strict' })),
    update: () => db.update('a', () => 2, strange()),
    setMany: () => db.setMany([['b', 1]], strange()),
    delete: () => db.delete('a', strange()),
    deleteIf: () => db.delete('a', strange({ ifSequence: 1 })),
    deleteRange: () => db.deleteRange({ gte: 'a' }, strange()),
    deleteRangeOf: () => db.deleteRange(strange({ gte: 'a' })),
    clear: () => db.clear(strange()),
    batchSet: () => db.batch().set('b', 1, strange()),
    batchDelete: () => db.batch().delete('a', strange()),
    batchDeleteRange: () => db.batch().deleteRange(strange({ gte: 'a' })),
    batchCommit: () => db.batch().set('b', 1).commit(strange()),
    keys: () => db.keys(strange()),
    values: () => db.values(strange()),
    entries: () => db.entries(strange({ limit: 5 })),
    count: () => db.count(strange()),
    transaction: () => db.transaction((tx) => tx.set('b', 1), strange()),
    begin: () => db.begin(strange()),
    changes: () => db.changes(strange({ since: 0 })),
    watch: () => db.watch('a', strange()),
    watchRange: () => db.watch(strange({ prefix: 'a' })),
    live: () => db.live(strange({ prefix: 'a' })),
    liveQuery: () => db.live(() => 1, strange()),
    flush: () => db.flush(strange()),
    compact: () => db.compact(strange()),
    check: () => db.check(strange()),
    export: () => db.export(strange()),
    import: () => db.import(db.export(), strange({ merge: true })),
  });
  expect((await db.stats()).sequence).toBe(before);
});

test('snapshots and transactions', async () => {
  const snapshot = db.snapshot();
  await expectRefused({
    get: () => snapshot.get('a', strange()),
    entries: () => snapshot.entries(strange()),
    count: () => snapshot.count(strange()),
    getIn: () => db.transaction((tx) => tx.get('a', strange())),
    getManyIn: () => db.transaction((tx) => tx.getMany([], strange())),
    getOwn: () =>
      db.transaction((tx) => {
        tx.set('b', 1);
        return tx.get('b', strange());
      }),
    hasIn: () => db.transaction((tx) => tx.has('a', strange())),
    hasManyIn: () => db.transaction((tx) => tx.hasMany([], strange())),
    set: () => db.transaction((tx) => tx.set('b', 1, strange())),
    update: () => db.transaction((tx) => tx.update('b', () => 1, strange())),
    deleteRange: () => db.transaction((tx) => tx.deleteRange(strange({ gte: 'a' }))),
    keys: () => db.transaction((tx) => tx.keys(strange()).next()),
    countIn: () => db.transaction((tx) => tx.count(strange())),
    countOwn: () =>
      db.transaction((tx) => {
        tx.set('b', 1);
        return tx.count(strange());
      }),
  });
  await snapshot.close();
});

test('the synchronous store', async () => {
  const snapshot = now.snapshot();
  await expectRefused({
    set: () => now.set('b', 1, strange()),
    setFor: () => now.set('b', 1, strange({ expiresIn: 5, durability: 'strict' })),
    update: () => now.update('a', () => 2, strange()),
    setMany: () => now.setMany([['b', 1]], strange()),
    delete: () => now.delete('a', strange()),
    deleteIf: () => now.delete('a', strange({ ifSequence: 1 })),
    deleteRange: () => now.deleteRange({ gte: 'a' }, strange()),
    deleteRangeOf: () => now.deleteRange(strange({ gte: 'a' })),
    clear: () => now.clear(strange()),
    batchSet: () => now.batch().set('b', 1, strange()),
    batchDelete: () => now.batch().delete('a', strange()),
    batchDeleteRange: () => now.batch().deleteRange(strange({ gte: 'a' })),
    batchCommit: () => now.batch().set('b', 1).commit(strange()),
    keys: () => now.keys(strange()),
    values: () => now.values(strange()),
    entries: () => now.entries(strange()),
    count: () => now.count(strange()),
    commit: () => now.commit(strange()),
    compact: () => now.compact(strange()),
    check: () => now.check(strange()),
    export: () => now.export(strange()),
    import: () => now.import(now.export(), strange({ merge: true })),
    transaction: () => now.transaction((tx) => tx.set('b', 1), strange()),
    begin: () => now.begin(strange()),
    transactionSet: () => now.transaction((tx) => tx.set('b', 1, strange())),
    transactionKeys: () => now.transaction((tx) => void tx.keys(strange()).next()),
    transactionCount: () => now.transaction((tx) => void tx.count(strange())),
    ...Object.fromEntries(
      [now, snapshot].flatMap((view, i) => [
        [`get ${i}`, () => view.get('a', strange())],
        [`getEntry ${i}`, () => view.getEntry('a', strange())],
        [`getMany ${i}`, () => view.getMany([], strange())],
        [`has ${i}`, () => view.has('a', strange())],
        [`hasMany ${i}`, () => view.hasMany([], strange())],
      ]),
    ),
    transactionGet: () => now.transaction((tx) => tx.get('a', strange())),
    transactionGetMany: () => now.transaction((tx) => tx.getMany([], strange())),
    transactionHas: () => now.transaction((tx) => tx.has('a', strange())),
    transactionHasMany: () => now.transaction((tx) => tx.hasMany([], strange())),
    snapshotEntries: () => snapshot.entries(strange()),
    snapshotCount: () => snapshot.count(strange()),
  });
  snapshot.close();
  expect([...now.entries()]).toEqual([['a', 1]]);
});

test('a count refuses the limit and the order of scans, which it would ignore', async () => {
  await expect(db.count({ limit: 1 } as never)).rejects.toThrow('no option limit here');
  expect(() => now.count({ reverse: true } as never)).toThrow('no option reverse here');
  expect(await db.count({ gte: 'a' })).toBe(1);
});

// The story: `tx.delete(key, { ifSequence })` ignored its condition and deleted the key.
test('a deletion in a transaction has no options, and nothing is deleted', async () => {
  const error = { code: 'VARVE_INVALID_ARGUMENT', message: 'There is no option ifSequence here; there is none.' };
  const condition = { ifSequence: 7 } as never;
  await expect(db.transaction((tx) => tx.delete('a', condition))).rejects.toMatchObject(error);
  expect(() => now.transaction((tx) => tx.delete('a', condition))).toThrow(expect.objectContaining(error));
  expect([await db.get('a'), now.get('a')]).toEqual([1, 1]);
});

test('collections', async () => {
  interface Note {
    readonly id: number;
    readonly title: string;
  }
  const notes = collection<Note>()(db, 'notes', { key: 'id', indexes: { title: 'title' } });
  await notes.insert({ id: 1, title: 'a' });
  const note = { id: 2, title: 'b' };
  await expectRefused({
    collection: () => collection<Note>()(db, 'bad', strange({ key: 'id' })),
    index: () => collection<Note>()(db, 'bad', { key: 'id', indexes: { title: strange({ of: 'title' }) } }),
    ready: () => notes.ready(strange()),
    get: () => notes.get(1, strange()),
    insert: () => notes.insert(note, strange()),
    insertMany: () => notes.insertMany([note], strange()),
    put: () => notes.put(note, strange()),
    update: () => notes.update(1, { title: 'c' }, strange()),
    delete: () => notes.delete(1, strange()),
    deleteNone: () => notes.delete(7, strange()),
    insertNone: () => notes.insertMany([], strange()),
    getIn: () => db.transaction((tx) => notes.in(tx).get(1, strange())),
    clear: () => notes.clear(strange()),
    find: () => notes.find('title', strange()),
    count: () => notes.count(strange()),
  });
  expect(await notes.find().toArray()).toEqual([{ id: 1, title: 'a' }]);
});

describe('functions that take options', () => {
  test('storages, handlers, contracts', async () => {
    await expectRefused({
      files: () => files('data', strange()),
      denoKv: () => denoKv({ atomic: () => undefined } as never, strange()),
      createHandler: () => createHandler(db, strange()),
      limits: () => createHandler(db, { limits: strange() }),
      cors: () => createHandler(db, { cors: strange({ origins: '*' }) }),
      bearer: () => bearer(strange({ write: ['a'] })),
      storageContract: () => storageContract(strange({ test: () => undefined, create: () => storage })),
    });
  });
});

test('options that are no object are refused, and an error names the options that there are', async () => {
  for (const options of [null, 5, 'strict']) {
    await expect(db.set('b', 1, options as never)).rejects.toMatchObject({
      code: 'VARVE_INVALID_ARGUMENT',
      message: `Options are an object, not ${options}.`,
    });
  }
  const none = null as never;
  const calls: Record<string, () => unknown> = {
    open: () => open('new', none),
    openInline: () => openInline('new', none),
    openSync: () => sync.open('new', none),
    list: () => listStores(none),
    listInline: () => listInline(none),
    delete: () => deleteInline('new', none),
    repair: () => repairInline('new', none),
    update: () => db.update('a', () => 2, none),
    updateSync: () => now.update('a', () => 2, none),
    transaction: () => db.transaction(() => undefined, none),
    transactionSync: () => now.transaction(() => undefined, none),
    import: () => db.import(db.export(), none),
    importSync: () => now.import(now.export(), none),
    export: () => db.export(none),
    exportSync: () => now.export(none),
    count: () => db.count(none),
    countIn: () => db.transaction((tx) => tx.count(none)),
    commit: () => db.batch().commit(none),
    commitSync: () => now.batch().commit(none),
  };
  for (const [name, call] of Object.entries(calls))
    expect(await failure(call), name).toMatchObject({ message: 'Options are an object, not null.' });
  await expect(db.set('b', 1, { ttl: 5 } as never)).rejects.toThrow(
    'There is no option ttl here; there is signal, durability, ifSequence, expiresIn, expiresAt.',
  );
  await expect(db.set('b', 1, { toString: 5 } as never)).rejects.toThrow('There is no option toString here');
});

// The story: `getMany('abc')` read the keys a, b and c, because a string can be iterated.
test('a value that is no list is refused, a single key too, and nothing is done', async () => {
  const snapshot = db.snapshot();
  const view = now.snapshot();
  const notes = collection<{ readonly id: number }>()(db, 'notes', { key: 'id' });
  for (const none of [
    null,
    undefined,
    5,
    'abc',
    new Uint8Array(2),
    {},
    Object.create(null),
    () => undefined,
  ] as never[]) {
    for (const several of [
      () => db.getMany(none),
      () => db.hasMany(none),
      () => db.setMany(none),
      () => snapshot.getMany(none),
      () => db.transaction((tx) => tx.getMany(none)),
      () => db.transaction((tx) => tx.hasMany(none)),
      () => notes.getMany(none),
      () => notes.insertMany(none),
    ]) {
      const error = {
        code: 'VARVE_INVALID_ARGUMENT',
        message: expect.stringMatching(/^Several .* iterable, not [a-z]+\.$/),
      };
      // The error is a rejection: no error is thrown that `catch` of the promise would miss.
      await expect(several()).rejects.toMatchObject(error);
    }
    for (const several of [
      () => now.getMany(none),
      () => now.hasMany(none),
      () => now.setMany(none),
      () => view.getMany(none),
      () => now.transaction((tx) => void tx.getMany(none)),
    ]) {
      expect(several).toThrow(/^Several .* iterable, not [a-z]+\.$/);
    }
  }
  for (const entry of [null, 5, 'ab', { 0: 'b', 1: 2 }] as never[]) {
    await expect(db.setMany([['b', 1], entry])).rejects.toThrow(
      /^An entry is an array of a key and a value, not [a-z]+\.$/,
    );
    expect(() => now.setMany([['b', 1], entry])).toThrow(/^An entry is an array of a key and a value, not [a-z]+\.$/);
  }
  expect([await db.count(), now.count()]).toEqual([1, 1]);
  await snapshot.close();
  view.close();
});
