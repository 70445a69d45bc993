/**
 * `varve/zero`: what Zero and Replicache demand of a key-value store, written from the documentation of their interface; then two tabs,
 * and what can go wrong.
 */

import type { KVStoreProvider } from 'replicache';
import { afterEach, beforeEach, describe, expect, expectTypeOf, test, vi } from 'vitest';
import { VarveError } from '../../js/src/errors.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import { View } from '../../js/src/store/view.ts';
import type { Key } from '../../js/src/types.ts';
import { type KVRead, type KVStore, type KVWrite, type StoreProvider, varveStoreProvider } from '../../js/src/zero.ts';
import { wasm } from './support/engine.ts';
import { FakeLocks } from './support/fake-opfs.ts';
import { tabs } from './support/two-tabs.ts';

let here: Store<Key, unknown>;
let there: Store<Key, unknown>;
let provider: StoreProvider;
let database: KVStore;

beforeEach(async () => {
  const [a, b] = tabs(2) as [() => never, () => never];
  here = await openStore<Key, unknown>('test', { wasm, storage: 'memory', cache: false }, a);
  there = await openStore<Key, unknown>('test', { wasm, storage: 'memory', cache: false }, b);
  provider = varveStoreProvider(here.at(['zero']));
  database = provider.create('rep:a');
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  await there.close();
  await here.close();
});

async function withRead<T>(store: KVStore, run: (read: KVRead) => Promise<T>): Promise<T> {
  const read = await store.read();
  try {
    return await run(read);
  } finally {
    read.release();
  }
}

async function withWrite(store: KVStore, run: (write: KVWrite) => Promise<unknown>): Promise<void> {
  const write = await store.write();
  try {
    await run(write);
    await write.commit();
  } finally {
    write.release();
  }
}

const read = (key: string, store = database) =>
  withRead(store, async (read) => [await read.has(key), await read.get(key)]);

test('it is a provider of key-value stores', () => {
  expectTypeOf<StoreProvider>().toExtend<KVStoreProvider>();
  expectTypeOf<KVStoreProvider>().toExtend<StoreProvider>();
});

test('a transaction reads its own writes; a commit applies them together, a release without it applies none', async () => {
  expect(await read('a')).toEqual([false, undefined]);
  await withWrite(database, async (write) => {
    await write.put('a', 1);
    await write.put('b', 1);
    expect([await write.has('a'), await write.get('a')]).toEqual([true, 1]);
    await write.del('b');
    expect([await write.has('b'), await write.get('b')]).toEqual([false, undefined]);
    await write.put('a', 2);
  });
  expect([await read('a'), await read('b')]).toEqual([
    [true, 2],
    [false, undefined],
  ]);
  const rolledBack = await database.write();
  expect([await rolledBack.has('a'), await rolledBack.get('a')]).toEqual([true, 2]);
  await rolledBack.put('c', 1);
  await rolledBack.del('a');
  rolledBack.release();
  expect([await read('a'), await read('c')]).toEqual([
    [true, 2],
    [false, undefined],
  ]);
  await withWrite(database, (write) => write.del('a'));
  await withWrite(database, async () => undefined);
  expect(await read('a')).toEqual([false, undefined]);
});

test('values are JSON, deeply frozen, as they are put and as they are read; undefined is none', async () => {
  const values = [null, 0, -0.5, false, '', 'ü\ud800', [], {}, { list: [1, { deep: null }], missing: undefined }];
  await withWrite(database, async (write) => {
    for (const [i, value] of values.entries()) await write.put(`${i}`, value as never);
    await expect(write.put('x', undefined as never)).rejects.toThrow(TypeError);
  });
  const isFrozen = (value: unknown): boolean =>
    Object.isFrozen(value) && (typeof value !== 'object' || value === null || Object.values(value).every(isFrozen));
  for (const [i, value] of values.entries()) {
    const [has, found] = await read(`${i}`);
    expect([has, found]).toStrictEqual([true, value]);
    expect([isFrozen(found), isFrozen(value)]).toEqual([true, true]);
  }
});

test('databases have their own keys; those of one name have the same; drop deletes one of them', async () => {
  await withWrite(database, (write) => write.put('a', 'a'));
  await withWrite(provider.create('rep:b'), (write) => write.put('a', 'b'));
  const again = varveStoreProvider(there.at(['zero'])).create('rep:a');
  expect(await read('a', again)).toEqual([true, 'a']);
  await provider.drop('rep:a');
  expect(await read('a', again)).toEqual([false, undefined]);
  expect(await read('a', provider.create('rep:b'))).toEqual([true, 'b']);
  expect(await here.count()).toBe(1);
});

test('a closed store or transaction rejects, and reports that; a transaction that was begun before goes on', async () => {
  const [reading, writing] = [await database.read(), provider.create('rep:b')];
  expect([database.closed, reading.closed]).toEqual([false, false]);
  await database.close();
  await database.close();
  expect(database.closed).toBe(true);
  for (const begin of [() => database.read(), () => database.write()])
    await expect(begin()).rejects.toThrow('Store is closed');
  expect(await reading.has('a')).toBe(false);
  reading.release();
  const write = await writing.write();
  await write.put('a', 1);
  await write.commit();
  expect([reading.closed, write.closed]).toEqual([true, false]);
  write.release();
  write.release();
  expect(write.closed).toBe(true);
  const calls = [reading, write].flatMap((tx) => [() => tx.has('a'), () => tx.get('a')]);
  calls.push(
    () => write.put('b', 1) as never,
    () => write.del('a') as never,
    () => write.commit() as never,
  );
  for (const call of calls) await expect(call()).rejects.toThrow('Transaction is closed');
});

describe.each([
  ['locks of this program', () => undefined],
  ['Web Locks', () => ({ locks: new FakeLocks() })],
])('with %s', (_, navigator) => {
  beforeEach(() => {
    vi.stubGlobal('navigator', navigator());
  });

  test('readers are there together, a writer is alone, in the order of the calls, also in two tabs', async () => {
    const other = varveStoreProvider(there.at(['zero'])).create('rep:a');
    const log: string[] = [];
    const run = async (name: string, begin: Promise<KVRead | KVWrite>, turns: number): Promise<void> => {
      const tx = await begin;
      log.push(`${name} begins`);
      const seen = await tx.get('n');
      for (let i = 0; i < turns; i++) await new Promise((done) => setImmediate(done));
      if ('put' in tx) {
        await tx.put('n', name);
        await tx.commit();
      }
      log.push(`${name} saw ${seen}`);
      tx.release();
    };
    await Promise.all([
      run('r1', database.read(), 9),
      run('r2', other.read(), 5),
      run('w1', database.write(), 3),
      run('w2', other.write(), 0),
      run('r3', database.read(), 0),
    ]);
    expect(log.slice(0, 2)).toEqual(['r1 begins', 'r2 begins']);
    expect(log.slice(2, 4).sort()).toEqual(['r1 saw undefined', 'r2 saw undefined']);
    expect(log.slice(4)).toEqual(['w1 begins', 'w1 saw undefined', 'w2 begins', 'w2 saw w1', 'r3 begins', 'r3 saw w2']);
  });

  test('no increment of two tabs is lost, and a transaction that could not begin leaves no lock', async () => {
    const other = varveStoreProvider(there.at(['zero'])).create('rep:a');
    const failure = new Error('locked');
    const broken = varveStoreProvider(Promise.reject(failure));
    for (const call of [
      () => broken.create('rep:a').write(),
      () => broken.create('rep:a').read(),
      () => broken.drop('rep:a'),
    ]) {
      await expect(call()).rejects.toBe(failure);
    }
    const increment = (store: KVStore) =>
      withWrite(store, async (write) => write.put('n', (((await write.get('n')) as number) ?? 0) + 1));
    await Promise.all(Array.from({ length: 40 }, (_, i) => increment(i % 2 ? database : other)));
    expect(await read('n')).toEqual([true, 40]);
  });
});

test('reads are made again if their read point is gone; a commit that fails can be made again', async () => {
  await withWrite(database, (write) => write.put('a', 1));
  const retry = new VarveError('VARVE_RETRY', 'The read point is gone.');
  vi.spyOn(View.prototype, 'get').mockRejectedValueOnce(retry);
  vi.spyOn(View.prototype, 'has').mockRejectedValueOnce(retry);
  expect(await read('a')).toEqual([true, 1]);
  const write = await database.write();
  await write.put('a', 2);
  const full = new VarveError('VARVE_STORAGE_FULL', 'The storage is full.');
  vi.spyOn(View.prototype, 'batch').mockReturnValueOnce({
    set: () => undefined,
    commit: () => Promise.reject(full),
  } as never);
  await expect(write.commit()).rejects.toBe(full);
  await write.commit();
  write.release();
  expect(await read('a')).toEqual([true, 2]);
});
