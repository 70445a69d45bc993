/**
 * `varve/automerge`: automerge-repo's own tests of storage adapters, over a store and over a view; then the same calls to it and to the
 * adapter for IndexedDB, and moves from that one.
 */

import 'fake-indexeddb/auto';
import type { StorageAdapterInterface } from '@automerge/automerge-repo';
import { runStorageAdapterTests } from '@automerge/automerge-repo/helpers/tests/storage-adapter-tests.js';
import { IndexedDBStorageAdapter } from '@automerge/automerge-repo-storage-indexeddb';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, expect, expectTypeOf, test, vi } from 'vitest';
import { migrate, type Progress, VarveStorageAdapter } from '../../js/src/automerge.ts';
import { VarveError } from '../../js/src/errors.ts';
import { openStore } from '../../js/src/store/open.ts';
import { Snapshot } from '../../js/src/store/snapshot.ts';
import type { Store } from '../../js/src/store/store.ts';
import { View } from '../../js/src/store/view.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';

const open = (): Promise<Store<Key, unknown>> =>
  openStore<Key, unknown>('test', { wasm, storage: 'memory' }, spawnServer);

for (const [title, prefix] of Object.entries({ 'a store': [], 'a view': ['docs'] })) {
  runStorageAdapterTests(async () => {
    const store = await open();
    return { adapter: new VarveStorageAdapter(store.at(prefix)), teardown: () => store.close() };
  }, title);
}

let db: Store<Key, unknown>;

vi.mock('../../js/src/index.ts', async (original) => ({ ...(await original<object>()), open: async () => db }));

beforeEach(async () => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  db = await open();
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  await db.close();
});

const data = (byte: number): Uint8Array<ArrayBuffer> => Uint8Array.of(byte);

test('it finds and deletes the same chunks as the adapter for IndexedDB', async () => {
  expectTypeOf<VarveStorageAdapter>().toExtend<StorageAdapterInterface>();
  const ours = new VarveStorageAdapter(db.at(['docs']));
  const theirs = new IndexedDBStorageAdapter();
  const keys = [['id'], ['a'], ['a', 'b'], ['a', 'b', 'c'], ['a', 'bc'], ['ab'], ['', ''], [], ['a', '']];
  const ranges = [[], [''], ['a'], ['a', 'b'], ['b'], ['a', 'b', 'c', 'd']];
  const compare = async (): Promise<void> => {
    for (const key of keys) expect(await ours.load(key)).toEqual(await theirs.load(key));
    for (const range of ranges) {
      const [found, wanted] = [await ours.loadRange(range), await theirs.loadRange(range)];
      // The other one has the order of the keys.
      const order = (chunks: typeof wanted) =>
        chunks.map(({ key, data }) => JSON.stringify([key, [...(data ?? [])]])).sort();
      expect(order(found)).toEqual(order(wanted));
    }
  };
  for (const [i, key] of keys.entries()) for (const adapter of [ours, theirs]) await adapter.save(key, data(i));
  await compare();
  for (const adapter of [ours, theirs]) {
    await adapter.remove(['a', 'b']);
    await adapter.remove(['absent']);
  }
  await compare();
  for (const range of [['a', 'b'], ['b'], ['a'], []]) {
    for (const adapter of [ours, theirs]) await adapter.removeRange(range);
    await compare();
  }
});

test('chunks come in the order in which they were saved, with bytes of their own, and nothing else of the store', async () => {
  await db.set(['other'], 1);
  const adapter = new VarveStorageAdapter(db.at(['docs']));
  const saved = ['z', 'a', 'm', 'b'].map((name) => ['doc', name]);
  for (const [i, key] of saved.entries()) await adapter.save(key, data(i));
  const chunks = await adapter.loadRange([]);
  expect(chunks.map(({ key }) => key)).toEqual(saved);
  for (const found of [chunks[1]?.data, await adapter.load(['doc', 'a'])]) {
    expect([...new Uint8Array((found as Uint8Array).buffer)]).toEqual([1]);
  }
  await adapter.removeRange([]);
  expect(await db.keys().next()).toMatchObject({ value: ['other'] });
});

test('reads are made again if their read point is gone; other errors are passed on', async () => {
  const adapter = new VarveStorageAdapter(db);
  await adapter.save(['a', 'b'], data(1));
  const retry = new VarveError('VARVE_RETRY', 'The read point is gone.');
  vi.spyOn(View.prototype, 'get').mockRejectedValueOnce(retry);
  vi.spyOn(Snapshot.prototype, 'getEntry').mockRejectedValueOnce(retry);
  expect(await adapter.load(['a', 'b'])).toEqual(data(1));
  expect(await adapter.loadRange(['a'])).toEqual([{ key: ['a', 'b'], data: data(1) }]);
  expect((await db.stats()).snapshots).toBe(0);
  const failure = new Error('locked');
  const broken = new VarveStorageAdapter(Promise.reject(failure));
  for (const call of [() => broken.load(['a']), () => broken.save(['a'], data(1)), () => broken.loadRange([])]) {
    await expect(call()).rejects.toBe(failure);
  }
});

test('an adapter of a name opens its store again if it was closed', async () => {
  const adapter = new VarveStorageAdapter('again');
  await adapter.save(['a'], data(1));
  await db.close();
  db = await open();
  expect(await adapter.load(['a'])).toBeUndefined();
  await adapter.save(['a'], data(2));
  expect(await adapter.loadRange([])).toEqual([{ key: ['a'], data: data(2) }]);
});

test('data of the adapter for IndexedDB is moved once; data that is there already, and the marks, stay', async () => {
  const old = new IndexedDBStorageAdapter('app', 'chunks');
  for (let i = 0; i < 150; i++) await old.save(['doc', 'incremental', `${i}`], data(i));
  await old.save(['storage-adapter-id'], data(7));
  const names = { database: 'app', store: 'chunks' };
  const view = db.at(['docs']);
  const adapter = new VarveStorageAdapter(view);
  await adapter.save(['doc', 'incremental', '3'], data(200));
  expect(await migrate({}, view)).toEqual({ copied: 0, state: 'absent' });
  const aborting = new AbortController();
  const onProgress = () => aborting.abort('cut off');
  await expect(migrate({ ...names, signal: aborting.signal, onProgress }, view)).rejects.toBe('cut off');
  const seen: Progress[] = [];
  expect(await migrate({ ...names, onProgress: (progress) => seen.push(progress) }, view)).toEqual({
    copied: 151 - 64 - 1,
    state: 'copied',
  });
  expect(seen.at(-1)).toEqual({ done: 151, total: 151 });
  expect(await adapter.loadRange([])).toHaveLength(151);
  expect(await adapter.load(['storage-adapter-id'])).toEqual(data(7));
  expect(await adapter.load(['doc', 'incremental', '3'])).toEqual(data(200));
  expect(await old.loadRange(['doc'])).toHaveLength(150);
  await adapter.removeRange([]);
  expect(await migrate(names, view)).toEqual({ copied: 0, state: 'before' });
  expect(await adapter.loadRange([])).toEqual([]);
});
