/** Exports and imports of the synchronous store, and between it and the asynchronous one. */

import { expect, test } from 'vitest';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import { open, type SyncStore } from '../../js/src/synchronous.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { boundaries, bytesOf, chunks, contents, newStore } from './support/exports.ts';
import { closedAfterTest } from './support/stores.ts';

const PATIENT = { timeout: 30_000 };

async function store(): Promise<SyncStore<Key, unknown>> {
  return closedAfterTest(
    await open<Key, unknown>('sync', { storage: 'memory', wasm, memoryBytes: 2 ** 20, compactor: false }),
  );
}

/** Sets that many numbers, in turns that are not too long. */
async function fill(db: SyncStore<Key, unknown>, count = 5000): Promise<void> {
  for (let i = 0; i < count; i++) {
    db.set(i, value(i), i % 10 === 0 ? { expiresIn: 1e9 } : undefined);
    if (i % 500 === 499) await nextTurn();
  }
}

const value = (i: number): string => `value ${i} `.repeat(30);

test('a store goes from one API to the other and back', async () => {
  const db = await store();
  await fill(db);
  const asynchronous = await newStore();
  await asynchronous.import(db.export());
  const other = await store();
  const report = await other.import(asynchronous.export(), { durability: 'strict' });
  expect(report.entries).toBe(5000);
  const entries = [...db].map(([key, value]) => [key, value, db.getEntry(key)?.expiresAt]);
  expect([...other].map(([key, value]) => [key, value, other.getEntry(key)?.expiresAt])).toStrictEqual(entries);
  expect(await contents(asynchronous)).toStrictEqual(entries);
  await asynchronous.close();
});

test('it has the read point of the call, and its snapshot is released', async () => {
  const db = await store();
  await fill(db);
  const stream = db.export({ gte: 100 });
  db.clear();
  const other = await store();
  await other.import(stream);
  expect(other.count()).toBe(4900);
  expect(db.stats()).toMatchObject({ snapshots: 0, scans: 0 });
  await fill(db);
  const reader = db.export().getReader();
  await reader.read();
  await reader.read();
  await reader.cancel();
  await expect.poll(() => [db.stats().snapshots, db.stats().scans], PATIENT).toEqual([0, 0]);
});

test('an import continues where it stopped', async () => {
  const db = await store();
  await fill(db);
  const exported = await bytesOf(db.export());
  const third = boundaries(exported)[2] as number;
  const other = await store();
  await expect(other.import(chunks(exported.subarray(0, third + 10), 10_000))).rejects.toMatchObject({
    code: 'VARVE_CORRUPT',
  });
  const before = other.count();
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(5000);
  const report = await other.import((offset) => chunks(exported.subarray(offset), 10_000));
  expect(report).toEqual({ entries: 5000, bytes: exported.length, resumedAt: third });
  expect([...other]).toStrictEqual([...db]);
});

test('an export has the range of the call; an invalid one ends its stream, and keeps nothing open', async () => {
  const db = await store();
  db.setMany([
    ['a', 1],
    ['b', 2],
  ]);
  const range = { gte: 'b' };
  const stream = db.export(range);
  range.gte = 'a';
  expect((await (await store()).import(stream)).entries).toBe(1);
  await expect(bytesOf(db.export({ gt: 1, gte: 2 }))).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  await expect.poll(() => db.stats().snapshots).toBe(0);
});

test('a store that is closed meanwhile ends both', async () => {
  const db = await store();
  await fill(db);
  const exported = await bytesOf(db.export());
  const reader = db.export().getReader();
  await reader.read();
  await reader.read();
  await db.close();
  const drained = (async () => {
    while (!(await reader.read()).done);
  })();
  await expect(drained).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  expect(() => db.export()).toThrow(expect.objectContaining({ code: 'VARVE_CLOSED' }));
  const other = await store();
  const importing = other.import(chunks(exported, 50_000), { onProgress: () => void other.close() });
  await expect(importing).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
});
