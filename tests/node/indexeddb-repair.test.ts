// Repairs of stores in IndexedDB, after the tests damage chunks and the journal. Entries that are listed as lost may be missing; all
// others are there. The damaged store stays unchanged.

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { deleteStore, listStores, open, repair } from '../../js/src/index.ts';
import { repair as repairSync } from '../../js/src/synchronous.ts';
import type { LostPart } from '../../js/src/tools/types.ts';
import { randomFrom, tools, wasm } from './support/engine.ts';
import { FakeLocks } from './support/fake-opfs.ts';

const ENTRIES = 3000;

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Bytes that do not compress, so that tables take many chunks. */
function entryOf(number: number): Uint8Array {
  const random = randomFrom(number);
  return Uint8Array.from({ length: 300 }, () => random(256));
}

/** A store with tables, and the end of its history in the log. */
async function fill(): Promise<void> {
  const db = await open<number, Uint8Array>('test', { storage: 'indexeddb', wasm, memoryBytes: 1024 * 1024 });
  for (let from = 0; from < ENTRIES; from += 500) {
    await db.setMany(Array.from({ length: 500 }, (_, i) => [from + i, entryOf(from + i)] as const));
  }
  await db.compact();
  for (let number = ENTRIES; number < ENTRIES + 40; number++) await db.set(number, entryOf(number));
  await db.close();
}

type Rows = [IDBValidKey, Uint8Array<ArrayBuffer>][];

/** Reads all rows of one object store of the database, lets `change` alter them, and writes them again. */
async function damage(store: 'chunks' | 'journal', change: (rows: Rows) => void): Promise<void> {
  const database = await new Promise<IDBDatabase>((resolve, reject) => {
    const opening = indexedDB.open('varve:test');
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
  const transaction = database.transaction(store, 'readwrite');
  const rows: Rows = [];
  const cursor = transaction.objectStore(store).openCursor();
  cursor.onsuccess = () => {
    const at = cursor.result;
    if (at !== null) {
      rows.push([at.key, at.value]);
      at.continue();
      return;
    }
    change(rows);
    transaction.objectStore(store).clear();
    for (const [key, value] of rows) transaction.objectStore(store).put(value, key);
  };
  await new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = reject;
  });
  database.close();
}

/** Repairs. Every entry that is not listed as lost must be there. Returns how many entries are missing, and the list. */
async function repaired(): Promise<{ missing: number; lost: readonly LostPart[] }> {
  const report = await repair('test', { tools });
  expect(report.name).toBe('test-repaired');
  const db = await open<number, Uint8Array>('test-repaired', { wasm });
  expect([db.storage.kind, db.recovery.state]).toEqual(['indexeddb', 'clean']);
  let missing = 0;
  for (let number = 0; number < ENTRIES + 40; number++) {
    const found = await db.get(number);
    if (found !== undefined) expect(found).toEqual(entryOf(number));
    else missing++;
  }
  expect([await db.count(), report.entries]).toEqual([ENTRIES + 40 - missing, ENTRIES + 40 - missing]);
  expect((await db.check({ tools })).problems).toEqual([]);
  await db.set(-1, entryOf(-1));
  await db.close();
  return { missing, lost: report.lost };
}

test('a repair of a sound store is a copy, and the store stays', async () => {
  await fill();
  expect(await repaired()).toEqual({ missing: 0, lost: [] });
  const db = await open('test', { wasm });
  expect(await db.count()).toBe(ENTRIES + 40);
  await db.close();
  expect(await listStores()).toEqual(['test', 'test-repaired']);
});

test.each([
  [
    'a byte of a chunk is another one',
    (bytes: Uint8Array<ArrayBuffer>) => bytes.with(30_000, (bytes[30_000] ?? 0) ^ 1),
  ],
  ['a chunk is cut short', (bytes: Uint8Array<ArrayBuffer>) => bytes.slice(0, 20_000)],
  ['a chunk is gone', () => undefined],
] as const)('%s: its keys are lost and listed, the others are there', async (_, change) => {
  await fill();
  await damage('chunks', (rows) => {
    // In the middle of every long slot: one of them is a table that counts.
    for (const slot of new Set(rows.map(([key]) => (key as number[])[0]))) {
      const chunks = rows.filter(([key]) => (key as number[])[0] === slot);
      const victim = chunks[Math.floor(chunks.length / 2)];
      // Reserved room is not a chunk of a slot.
      if (victim === undefined || chunks.length < 4 || !(victim[1] instanceof Uint8Array)) continue;
      const changed = change(victim[1] as Uint8Array<ArrayBuffer>);
      if (changed === undefined) rows.splice(rows.indexOf(victim), 1);
      else victim[1] = changed;
    }
  });
  const { missing, lost } = await repaired();
  expect(missing).toBeGreaterThan(0);
  expect(missing).toBeLessThan(1500);
  expect(lost.length).toBeGreaterThan(0);
});

test('a repair without room leaves nothing behind, and the error of varve/synchronous names repair() of varve', async () => {
  await fill();
  await expect(repairSync('test', { tools })).rejects.toMatchObject({
    code: 'VARVE_UNSUPPORTED',
    message: expect.stringContaining('repair() of "varve"'),
  });
  const { commit } = IDBTransaction.prototype;
  const puts = vi.spyOn(IDBObjectStore.prototype, 'put');
  vi.spyOn(IDBTransaction.prototype, 'commit').mockImplementation(function (this: IDBTransaction) {
    if (puts.mock.calls.length === 0) return commit.call(this);
    this.abort();
    Object.defineProperty(this, 'error', { value: new DOMException('Full.', 'QuotaExceededError') });
  });
  await expect(repair('test', { tools })).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  vi.restoreAllMocks();
  expect(await listStores()).toEqual(['test']);
  await expect(repair('test', { tools, into: 'test' })).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  await expect(repair('none', { tools })).rejects.toMatchObject({ code: 'VARVE_NOT_FOUND' });
  expect(await repaired()).toEqual({ missing: 0, lost: [] });
  await expect(repair('test', { tools })).rejects.toMatchObject({ code: 'VARVE_EXISTS' });
  expect(await deleteStore('test-repaired')).toBe(true);
});
