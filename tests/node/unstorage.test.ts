/**
 * `varve/unstorage` under unstorage's `createStorage`: what unstorage demands of every driver, written from its documentation, then
 * mounts, watches and lifetimes.
 */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createStorage, type Driver, prefixStorage, restoreSnapshot, snapshot } from 'unstorage';
import httpDriver from 'unstorage/drivers/http';
import { createStorageServer } from 'unstorage/server';
import { expect, expectTypeOf, onTestFinished, test, vi } from 'vitest';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { type VarveDriver, varveDriver } from '../../js/src/unstorage.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { goneOnce } from './support/gone.ts';
import { closedAfterTest } from './support/stores.ts';

async function open(): Promise<Store<Key, unknown>> {
  return closedAfterTest(await openStore<Key, unknown>('test', { wasm, storage: 'memory' }, spawnServer));
}

const create = (
  store: Store<Key, unknown> | Promise<Store<Key, unknown>> = open(),
  prefix: readonly Key[] = ['items'],
) => createStorage({ driver: varveDriver({ store, prefix }) });

test('it is a driver, and has its options', async () => {
  expectTypeOf<VarveDriver>().toExtend<Driver>();
  const options = { store: open() };
  expect(varveDriver(options)).toMatchObject({ name: 'varve', options });
  await options.store;
});

test('items are set, read, listed and removed; keys lose their query', async () => {
  const storage = create();
  expect(await storage.hasItem('s1:a')).toBe(false);
  expect(await storage.getItem('s1:a')).toBeNull();
  expect(await storage.getItemRaw('s1:a')).toBeNull();
  expect(await storage.getKeys()).toEqual([]);
  for (const key of ['s1:a', 's2/a', 's3:a?q=1']) await storage.setItem(key, 'data');
  expect(await storage.hasItem('s1:a')).toBe(true);
  expect(await storage.getItem('s3:a?q=2')).toBe('data');
  expect(await storage.getKeys()).toEqual(['s1:a', 's2:a', 's3:a']);
  expect(await storage.getKeys('s1')).toEqual(['s1:a']);
  await storage.removeItem('s1:a');
  await storage.removeItem('s1:a');
  expect(await storage.getItem('s1:a')).toBeNull();
  await storage.setItem('s2:a', undefined as never);
  expect(await storage.getKeys()).toEqual(['s3:a']);
});

test('keys have a depth', async () => {
  const storage = create();
  const keys = ['a', 'b:c', 'b:d:e', 'b:d:f'];
  for (const key of keys) await storage.setItem(key, '1');
  expect(await storage.getKeys(undefined, { maxDepth: 0 })).toEqual(['a']);
  expect(await storage.getKeys(undefined, { maxDepth: 1 })).toEqual(['a', 'b:c']);
  expect(await storage.getKeys('b:d')).toEqual(['b:d:e', 'b:d:f']);
});

test('values are what JSON makes of them; what it cannot make is refused by unstorage', async () => {
  const storage = create();
  class Named {
    toJSON = () => ({ name: 'x' });
  }
  for (const [value, read] of [
    [{ json: ['works'] }, { json: ['works'] }],
    [true, true],
    [0, 0],
    [false, false],
    ['', ''],
    [null, null],
    [new Named(), { name: 'x' }],
  ]) {
    await storage.setItem('a', value as never);
    expect(await storage.getItem('a')).toEqual(read);
  }
  await expect(storage.setItem('a', new (class {})())).rejects.toThrow('Cannot stringify');
});

test('raw values are bytes, and everything that can be cloned', async () => {
  const storage = create();
  await storage.setItemRaw('a', Buffer.from([1, 2, 255]));
  expect(await storage.getItemRaw('a')).toEqual(Uint8Array.of(1, 2, 255));
  // They were once a part of a larger buffer, and a caller that sent their `buffer` sent other entries, too.
  expect((await storage.getItemRaw<Uint8Array>('a'))?.buffer.byteLength).toBe(3);
  const value = { at: new Date(0), of: new Map([['a', 1n]]) };
  await storage.setItemRaw('a', value);
  expect(await storage.getItemRaw('a')).toEqual(value);
  await storage.setItem('a', 'text');
  expect(await storage.getItemRaw('a')).toBe('text');
  await expect(storage.setItemRaw('a', () => 1)).rejects.toMatchObject({ code: 'VARVE_INVALID_VALUE' });
});

test('several items are set in one write and read at one read point', async () => {
  const db = await open();
  const storage = create(db);
  const before = (await db.stats()).sequence;
  await storage.setItems<string | object>([
    { key: 't:1', value: 'one' },
    { key: 't:2', value: { two: 2 } },
  ]);
  expect((await db.getEntry(['items', 't:1']))?.sequence).toBe(before + 1);
  expect((await db.getEntry(['items', 't:2']))?.sequence).toBe(before + 2);
  expect(await storage.getItems(['t:1', { key: 't:2' }, 't:none'])).toEqual([
    { key: 't:1', value: 'one' },
    { key: 't:2', value: { two: 2 } },
    { key: 't:none', value: null },
  ]);
});

test('clear deletes the items of a base, and nothing of the store that is no item', async () => {
  const db = await open();
  const others: [Key, unknown][] = [
    [1, 'number'],
    [['note', 1], 'array'],
  ];
  await db.setMany(others);
  const driver = varveDriver({ store: db });
  await driver.clear();
  for (const key of ['a:1', 'a:2', 'ab', 'b']) await driver.setItem(key, key);
  expect(await driver.getKeys()).toEqual(['a:1', 'a:2', 'ab', 'b']);
  await driver.clear('a:');
  expect(await driver.getKeys()).toEqual(['ab', 'b']);
  await createStorage({ driver }).clear();
  const left: [Key, unknown][] = [];
  for await (const entry of db.entries()) left.push(entry);
  expect(left).toEqual(others);
});

test('one store has several mounts', async () => {
  const db = await open();
  const storage = createStorage().mount('cache', varveDriver({ store: db, prefix: ['cache'] }));
  storage.mount('cache:deep', varveDriver({ store: db.at(['deep']) }));
  await storage.setItem('cache:a', 'shallow');
  await storage.setItem('cache:deep:a', 'deep');
  await storage.setItem('memory', 'elsewhere');
  expect(await db.get(['cache', 'a'])).toBe('shallow');
  expect(await db.get(['deep', 'a'])).toBe('deep');
  expect((await storage.getKeys('cache')).sort()).toEqual(['cache:a', 'cache:deep:a']);
  expect(await prefixStorage(storage, 'cache').getItem('a')).toBe('shallow');
  expect(await snapshot(storage, 'cache')).toEqual({ a: 'shallow', 'deep:a': 'deep' });
  await storage.unmount('cache:deep');
  expect(await storage.getItem('cache:deep:a')).toBeNull();
  // A driver closes no store: others may use it.
  expect(await db.get(['deep', 'a'])).toBe('deep');
  await restoreSnapshot(storage, { b: 'back' }, 'cache');
  expect(await storage.getKeys('cache')).toEqual(['cache:a', 'cache:b']);
});

test('metadata is an item, as unstorage keeps it', async () => {
  const storage = create();
  const mtime = new Date(5);
  await storage.setItem('a', 'b');
  await storage.setMeta('a', { mtime, by: 'ada' });
  expect(await storage.getMeta('a')).toEqual({ mtime, by: 'ada' });
  await storage.removeItem('a', { removeMeta: true });
  expect(await storage.getMeta('a')).toEqual({});
});

test('a watch reports every set and removal, of this storage and of others, until it ends', async () => {
  const db = await open();
  const storage = createStorage().mount('data', varveDriver({ store: db, prefix: ['data'] }));
  const heard: string[] = [];
  const unhandled = vi.fn();
  process.once('uncaughtException', unhandled);
  const unwatch = await storage.watch((event, key) => {
    heard.push(`${event} ${key}`);
    if (key === 'data:c') throw new Error('of the callback');
  });
  await storage.setItem('data:b', '1');
  await db.set(['data', 'c'], 'from another tab');
  await db.set(['elsewhere', 'd'], 1);
  await db.set(['data', 7], 'no item');
  await storage.removeItem('data:b');
  const all = ['update data:b', 'update data:c', 'remove data:b'];
  await vi.waitFor(() => expect(heard).toEqual(all));
  expect(unhandled).toHaveBeenCalledOnce();
  await unwatch();
  await storage.setItem('data:e', '1');
  const driver = varveDriver({ store: db, prefix: ['data'] });
  const last = vi.fn();
  driver.watch(last);
  await driver.setItem('f', '1');
  await vi.waitFor(() => expect(last).toHaveBeenCalledExactlyOnceWith('update', 'f'));
  driver.dispose();
  const after = vi.fn();
  driver.watch(after);
  await driver.setItem('g', '1');
  await vi.waitFor(() => expect(after).toHaveBeenCalled());
  expect([heard, last.mock.calls.length]).toEqual([all, 1]);
});

test('an item with a ttl, in seconds, expires; 0 is none', async () => {
  const db = await open();
  const storage = create(db);
  const start = Date.now();
  await storage.setItem('a', '1', { ttl: 60 });
  await storage.setItemRaw('b', '1', { ttl: 0 });
  await storage.setItems([{ key: 'c', value: '1', options: { ttl: 60 } }]);
  for (const key of ['a', 'c']) {
    const expires = (await db.getEntry(['items', key]))?.expiresAt?.getTime() ?? 0;
    expect(expires - start).toBeGreaterThanOrEqual(60_000);
    expect(expires - start).toBeLessThan(120_000);
  }
  expect((await db.getEntry(['items', 'b']))?.expiresAt).toBeUndefined();
});

test('a server of unstorage over the driver: its client reads, writes, lists and removes', async () => {
  const db = await open();
  const server = createServer(createStorageServer(create(db)).handle).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = createStorage({ driver: httpDriver({ base: `http://127.0.0.1:${port}` }) });
  await client.setItem('user:ada', { born: 1815 }, { ttl: 60 });
  await client.setItemRaw('user:picture', Uint8Array.of(0, 255));
  expect(await client.getItem('user:ada')).toEqual({ born: 1815 });
  expect(new Uint8Array((await client.getItemRaw<ArrayBuffer>('user:picture')) ?? [])).toEqual(Uint8Array.of(0, 255));
  expect((await db.getEntry(['items', 'user:ada']))?.expiresAt).toBeInstanceOf(Date);
  expect(await client.getKeys('user')).toEqual(['user:ada', 'user:picture']);
  await client.removeItem('user:ada');
  expect([await client.hasItem('user:ada'), await client.hasItem('user:picture')]).toEqual([false, true]);
  await client.clear();
  expect(await db.count()).toBe(0);
});

test('calls before the store is open wait; if it cannot be opened, they reject with that error', async () => {
  const failure = new Error('locked');
  const driver = varveDriver({ store: Promise.reject(failure) });
  driver.watch(() => undefined)();
  const calls = [driver.hasItem('a'), driver.getItem('a'), driver.setItem('a', ''), driver.getKeys(), driver.clear()];
  for (const call of calls) await expect(call).rejects.toBe(failure);
  let opened = (_: Store<Key, unknown>): void => undefined;
  const storage = create(new Promise<Store<Key, unknown>>((done) => (opened = done)));
  const early = [storage.setItem('a', 'b'), storage.getItem('a'), storage.removeItem('a'), storage.hasItem('a')];
  opened(await open());
  expect(await Promise.all(early)).toEqual([undefined, 'b', undefined, false]);
});

test('reads whose read point is gone, because another tab leads the store, are made again', async () => {
  const storage = create();
  await storage.setItem('a', 'one');
  const failed = goneOnce();
  expect(await storage.hasItem('a')).toBe(true);
  expect(await storage.getItem('a')).toBe('one');
  expect(await storage.getItems(['a'])).toMatchObject([{ value: 'one' }]);
  expect(await storage.getKeys()).toEqual(['a']);
  expect(failed()).toBe(4);
});
