// Stores that an adapter keeps: the engine runs in the realm of its caller, behind the same API.

import { expect, test, vi } from 'vitest';
import { check, deleteStore, listStores, open, repair } from '../../js/src/index.ts';
import * as sync from '../../js/src/synchronous.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { tools, wasm } from './support/engine.ts';
import { KeptDevices } from './support/kept-devices.ts';

test('the next opening reads the writes of the one before, asynchronous or synchronous', async () => {
  const storage = new KeptDevices();
  const db = await open('notes', { storage, wasm });
  expect(db.storage).toEqual({ kind: 'kept' });
  await db.set(['note', 42], { title: 'Silt' });
  await db.close();
  const again = await sync.open('notes', { storage, wasm });
  expect(again.recovery.state).toBe('clean');
  expect(again.get(['note', 42])).toEqual({ title: 'Silt' });
  again.set('more', 1);
  await again.close();
  const third = await open('notes', { storage, wasm });
  expect(await third.get('more')).toBe(1);
  await third.close();
  expect(storage.opened).toEqual(['notes', 'notes', 'notes']);
});

test('operations called before the engine is loaded are answered in order', async () => {
  const db = await open('order', { storage: new KeptDevices(), wasm });
  const seen: number[] = [];
  const writes = Array.from({ length: 50 }, (_, i) => db.set(i, i).then(() => seen.push(i)));
  const [value, count] = await Promise.all([db.get(49), db.count(), ...writes]);
  expect([value, count]).toEqual([49, 50]);
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  await db.close();
});

test('timers run while operations are awaited one after another', async () => {
  const db = await open('turns', { storage: new KeptDevices(), wasm });
  let isLate = false;
  setTimeout(() => {
    isLate = true;
  }, 5);
  for (let i = 0; !isLate && i < 1_000_000; i++) await db.get('nothing');
  expect(isLate).toBe(true);
  await db.close();
});

test('memtables are flushed and merged in slices', async () => {
  const db = await open('slices', { storage: new KeptDevices(), wasm, memoryBytes: 1024 * 1024 });
  const value = new Uint8Array(1000);
  for (let round = 0; round < 40; round++) {
    await Promise.all(Array.from({ length: 250 }, (_, i) => db.set((i * 7919 + round) % 5000, value)));
  }
  await db.compact();
  const { levels } = await db.stats();
  expect(levels.reduce((tables, level) => tables + level.tables, 0)).toBeGreaterThan(0);
  expect(await db.get((7919 + 3) % 5000)).toEqual(value);
  await db.close();
});

test('a storage that fetches bytes for reads may keep a quarter of the memory, and the room that the cache does not use', async () => {
  const storage = new ChunkAdapter();
  const device = await storage.open('spare');
  const allowed = vi.spyOn(device, 'allowSpare');
  vi.spyOn(storage, 'open').mockResolvedValue(device);
  const db = await open('spare', { storage, wasm, memoryBytes: 24 * 1024 * 1024 });
  const [[bytes]] = allowed.mock.calls as [[() => number]];
  const { cache } = await db.stats();
  expect(cache.maxBytes).toBeGreaterThan(16 * 1024 * 1024);
  expect(bytes()).toBe(6 * 1024 * 1024 + cache.maxBytes - cache.bytes - cache.indexBytes);
  await db.close();
  expect(bytes()).toBe(6 * 1024 * 1024);
});

test('a second opener is refused, and the first continues', async () => {
  const storage = new KeptDevices();
  const db = await open('one', { storage, wasm });
  await expect(open('one', { storage, wasm, lockTimeout: 1 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await expect(deleteStore('one', { storage })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await db.set('a', 1);
  await db.close();
});

test('listing and deleting ask the adapter', async () => {
  const storage = new KeptDevices();
  for (const name of ['b', 'a']) await (await open(name, { storage, wasm })).close();
  expect(await listStores({ storage })).toEqual(['a', 'b']);
  expect(await deleteStore('a', { storage })).toBe(true);
  expect(await sync.deleteStore('a', { storage })).toBe(false);
  expect(await sync.listStores({ storage })).toEqual(['b']);
});

test('a storage that is neither a name nor an adapter is refused', async () => {
  for (const storage of ['disk', 7, {}, null]) {
    const options = { storage } as unknown as { storage: 'memory' };
    await expect(async () => open('wrong', options)).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  }
});

test('a store of an adapter is checked, and repaired into another one of the same adapter', async () => {
  const storage = new KeptDevices();
  const db = await open('notes', { storage, wasm });
  await db.setMany(Array.from({ length: 500 }, (_, number) => [number, `value of ${number}`]));
  await db.compact();
  expect(await db.check({ tools })).toMatchObject({ ok: true, problems: [] });
  for (const closed of [check, sync.check, repair]) {
    await expect(closed('notes', { storage, tools, lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    await expect(closed('none', { storage, tools })).rejects.toMatchObject({ code: 'VARVE_NOT_FOUND' });
  }
  await db.close();
  const sound = { ok: true, problems: [], withoutKey: false, entries: 500 };
  expect(await check('notes', { storage, tools })).toMatchObject(sound);
  expect(await sync.check('notes', { storage, tools })).toMatchObject(sound);
  expect(await listStores({ storage })).toEqual(['notes']);
  const report = await repair('notes', { storage, tools });
  expect(report).toMatchObject({ name: 'notes-repaired', entries: 500, lost: [] });
  const repaired = await sync.open('notes-repaired', { storage, wasm });
  expect(repaired.get(123)).toBe('value of 123');
  await repaired.close();
  await expect(sync.repair('notes', { storage, tools })).rejects.toMatchObject({
    code: 'VARVE_EXISTS',
    message: expect.stringContaining('"notes-repaired" already'),
  });
  await expect(sync.repair('none', { storage, tools })).rejects.toMatchObject({ code: 'VARVE_NOT_FOUND' });
  expect(await sync.repair('notes', { storage, tools, into: 'third' })).toMatchObject({ entries: 500 });
  expect(await listStores({ storage })).toEqual(['notes', 'notes-repaired', 'third']);
});

test('a repair that is ended leaves no store behind', async () => {
  const storage = new KeptDevices();
  const db = await open('notes', { storage, wasm });
  // Many slices of work: the engine learns of the abort one turn after the first slice.
  await db.setMany(Array.from({ length: 200_000 }, (_, number) => [number, `value of ${number}`]));
  await db.close();
  const controller = new AbortController();
  const repairing = repair('notes', {
    storage,
    tools,
    signal: controller.signal,
    onProgress: () => controller.abort(),
  });
  await expect(repairing).rejects.toMatchObject({ name: 'AbortError' });
  expect(await listStores({ storage })).toEqual(['notes']);
});
