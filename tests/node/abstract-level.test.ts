/** `varve/abstract-level` under the suite of abstract-level, over files, and what the suite does not cover. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import suite from 'abstract-level/test';
import { BrowserLevel } from 'browser-level';
import { IDBFactory, IDBKeyRange } from 'fake-indexeddb';
import { afterAll, describe, expect, expectTypeOf, test, vi } from 'vitest';
import { migrate, type Progress, VarveLevel } from '../../js/src/abstract-level.ts';
import { VarveError } from '../../js/src/errors.ts';
import { files } from '../../js/src/fs.ts';
import { listStores, open } from '../../js/src/index.ts';
import { ReadView } from '../../js/src/store/read-view.ts';
import { View } from '../../js/src/store/view.ts';
import { tape } from '../support/tape.ts';
import { wasm } from './support/engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'varve-level-'));
const storage = files(folder);
const options = { storage, wasm };
const store = await open('store', options);
let count = 0;

afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A database of its own in the store. */
const inStore = () => new VarveLevel(store.at([count++]));

describe('the suite of abstract-level, in views of one store', () => {
  suite({ test: tape(test), factory: (given) => new VarveLevel(store.at([count++]), given) });
});

test('a database in a store of its name is there after it is opened again, and gone after destroy', async () => {
  const first = new VarveLevel<string, { title: string }>('named', { ...options, valueEncoding: 'json' });
  expect(first.location).toBe('named');
  await first.put('silt', { title: 'Silt' });
  await first.close();
  await first.open({ createIfMissing: false });
  const title = await first.get('silt');
  expectTypeOf(title).toEqualTypeOf<{ title: string } | undefined>();
  expect(title).toEqual({ title: 'Silt' });
  await first.close();
  await VarveLevel.destroy('named', { storage });
  expect(await listStores({ storage })).toEqual(['store']);
});

test('createIfMissing and errorIfExists are those of Level', async () => {
  const opening = (given: object) => new VarveLevel('store', { ...options, ...given }).open();
  await expect(opening({ errorIfExists: true })).rejects.toMatchObject({
    code: 'LEVEL_DATABASE_NOT_OPEN',
    cause: { message: 'The store store exists.' },
  });
  const missing = new VarveLevel('missing', { ...options, createIfMissing: false });
  await expect(missing.open()).rejects.toMatchObject({ cause: { message: 'The store missing does not exist.' } });
  expect(await listStores({ storage })).toEqual(['store']);
});

test('a store that is open elsewhere is LEVEL_LOCKED', async () => {
  const level = new VarveLevel('store', { ...options, lockTimeout: 0 });
  await expect(level.open()).rejects.toMatchObject({
    code: 'LEVEL_DATABASE_NOT_OPEN',
    cause: { code: 'LEVEL_LOCKED', cause: { code: 'VARVE_LOCKED' } },
  });
});

test('the store stays open, and its other keys are neither read nor cleared', async () => {
  const view = store.at(['shared']);
  // The key of the view itself, `['shared']` in the store, comes before all bytes. It was once read, and `clear()` deleted it.
  await view.setMany([
    ['text', 1],
    [7, 2],
    [[], 3],
  ]);
  const level = new VarveLevel<Uint8Array, string>(Promise.resolve(view), { keyEncoding: 'view' });
  const keys = [Uint8Array.of(), Uint8Array.of(0), Uint8Array.of(0, 255), Uint8Array.of(255, 255)];
  for (const key of keys) await level.put(key, 'value');
  expect(await level.keys().all()).toEqual(keys);
  expect(await level.keys({ reverse: true, limit: 1 }).all()).toEqual([keys[3]]);
  await level.clear({ gt: Uint8Array.of(), limit: 1 });
  expect(await level.keys().all()).toEqual(keys.filter((key) => key.join() !== '0'));
  await level.clear();
  await level.close();
  expect(await view.count()).toBe(3);
  expect(await view.getMany(['text', 7, []])).toEqual([1, 2, 3]);
});

// Story: a `clear` with a limit read its keys, and then deleted them with what had been put there meanwhile.
test('calls after a clear that reads its keys take effect after it', async () => {
  const level = inStore();
  await level.batch(['a', 'b', 'c', 'd'].map((key) => ({ type: 'put', key, value: 'old' }) as const));
  const snapshot = level.snapshot();
  const calls = [
    level.clear({ limit: 2 }),
    level.put('a', 'new'),
    level.get('a'),
    level.get('b'),
    level.clear({ gte: 'c', snapshot }),
    level.batch([{ type: 'put', key: 'c', value: 'new' }]),
    level.del('a'),
    level.getMany(['a', 'b', 'c', 'd']),
  ] as const;
  const [, , a, b, , , , all] = await Promise.all(calls);
  expect([a, b, all]).toEqual(['new', undefined, [undefined, undefined, 'new', undefined]]);
  await snapshot.close();
  expect(await level.iterator().all()).toEqual([['c', 'new']]);
  await level.close();
});

test('sync waits for the disk, and nothing else does', async () => {
  const durabilities: unknown[] = [];
  const note = (given: object | undefined) => durabilities.push((given as { durability?: string })?.durability);
  const set = vi.spyOn(View.prototype, 'set').mockImplementation(async (_key, _value, given) => note(given) as never);
  const level = inStore();
  await level.put('a', '1', { sync: true });
  await level.put('a', '1');
  set.mockRestore();
  expect(durabilities).toEqual(['strict', undefined]);
  await level.del('a', { sync: true });
  await level.batch([{ type: 'put', key: 'b', value: '2' }], { sync: true });
  await level.batch().put('c', '3').write({ sync: true });
  expect(await level.iterator().all()).toEqual([
    ['b', '2'],
    ['c', '3'],
  ]);
  await level.close();
});

test('a read whose read point is gone is repeated; one of a snapshot is not', async () => {
  const level = inStore();
  await level.put('a', '1');
  const snapshot = level.snapshot();
  const gone = new VarveError('VARVE_RETRY', 'gone');
  const get = vi.spyOn(ReadView.prototype, 'get').mockRejectedValueOnce(gone).mockRejectedValueOnce(gone);
  expect(await level.get('a')).toBe('1');
  get.mockRejectedValueOnce(gone);
  await expect(level.get('a', { snapshot })).rejects.toBe(gone);
  get.mockRestore();
  // `clear` with a limit passed the error on.
  const keys = vi.spyOn(ReadView.prototype, 'keys').mockImplementationOnce((): never => {
    throw gone;
  });
  await level.clear({ limit: 1 });
  keys.mockRestore();
  expect(await level.get('a')).toBeUndefined();
  await level.close();
});

test('no snapshot stays open behind iterators and databases', async () => {
  const level = inStore();
  await level.batch(['a', 'b', 'c'].map((key) => ({ type: 'put', key, value: key })));
  for await (const [key] of level.iterator()) if (key === 'b') break;
  const iterator = level.values({ limit: 3 });
  expect(await iterator.next()).toBe('a');
  iterator.seek('c');
  expect(await iterator.nextv(5)).toEqual(['c']);
  level.snapshot();
  level.iterator();
  expect((await store.stats()).snapshots).toBe(3);
  await level.close();
  const { snapshots, scans } = await store.stats();
  expect([snapshots, scans]).toEqual([0, 0]);
});

test('an iterator goes on after a seek for as long as there are entries, in both directions', async () => {
  const level = inStore();
  const keys = Array.from({ length: 100 }, (_, i) => String(i).padStart(2, '0'));
  await level.batch(keys.map((key) => ({ type: 'put', key, value: `of ${key}` })));
  for (const reverse of [false, true]) {
    const wanted = reverse ? keys.slice(5, 96).reverse() : keys.slice(5, 96);
    const iterator = level.iterator({ reverse, gte: '05', lt: '96' });
    const [first] = (await iterator.next()) ?? [];
    expect(first).toBe(wanted[0]);
    iterator.seek(wanted[10] as string);
    const found = [...(await iterator.nextv(3)), ...(await iterator.nextv(50)), ...(await iterator.all())];
    expect(found).toEqual(wanted.slice(10).map((key) => [key, `of ${key}`]));
    const values = level.values({ reverse, gte: '05', lt: '96', limit: 60 });
    values.seek(wanted[10] as string);
    expect(await values.all()).toEqual(wanted.slice(10, 70).map((key) => `of ${key}`));
  }
  await level.close();
});

test('a database of browser-level is copied once; a copy that is cut off is made again', async () => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('IDBKeyRange', IDBKeyRange);
  const old = new BrowserLevel<string, string>('old');
  await old.batch(Array.from({ length: 150 }, (_, i) => ({ type: 'put', key: `key ${i}`, value: `value ${i}` })));
  await old.sublevel('sub').put('a', 'in a sublevel');
  await old.put(Uint8Array.of(0, 255), Uint8Array.of(), { keyEncoding: 'view', valueEncoding: 'view' });
  const wanted = await old.iterator({ keyEncoding: 'view', valueEncoding: 'view' }).all();
  const level = inStore();
  await level.put('key 7', 'newer');

  const ending = new AbortController();
  const cut = migrate(level, { location: 'old', signal: ending.signal, onProgress: () => ending.abort() });
  await expect(cut).rejects.toMatchObject({ name: 'AbortError' });
  const seen: Progress[] = [];
  expect(await migrate(level, { location: 'old', onProgress: (progress) => seen.push(progress) })).toEqual({
    copied: 152 - 64 - 1,
    state: 'copied',
  });
  expect(seen.at(-1)).toEqual({ done: 152, total: 152 });
  expect(await level.get('key 7')).toBe('newer');
  await level.put('key 7', 'value 7');
  expect(await level.iterator({ keyEncoding: 'view', valueEncoding: 'view' }).all()).toEqual(wanted);
  expect(await level.sublevel('sub').get('a')).toBe('in a sublevel');

  await level.clear();
  expect(await migrate(level, { location: 'old' })).toEqual({ copied: 0, state: 'before' });
  expect(await level.keys().all()).toEqual([]);
  expect(await old.get('key 8')).toBe('value 8');
  expect(await migrate(level, { location: 'none' })).toEqual({ copied: 0, state: 'absent' });
  await expect(migrate(level)).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  await Promise.all([old.close(), level.close()]);
  vi.unstubAllGlobals();
});
