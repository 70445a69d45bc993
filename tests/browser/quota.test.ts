// A full storage refuses writes that do not fit, with VARVE_STORAGE_FULL. Acknowledged entries are there, and refused ones are not.
// Deletes still work. Writes continue when there is room again.

import type { CDPSession, Page, Worker } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

/** Room that a store has left when its quota is set, in bytes. */
const ROOM_BYTES = 3_000_000;
/** Entries written while there is room for all of them. */
const BEFORE = 100;

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

declare global {
  /** The store of a test, in its page or worker. */
  var full: import('varve').Store<number, string>;
  var fullSync: import('varve/synchronous').SyncStore<number, string>;
}

/** The code that a write through the synchronous API ends with. */
function endingCode(worker: Worker, key: number): Promise<string> {
  return worker.evaluate(
    (number) => codeOf(() => fullSync.set(number, longValue(number), { durability: 'strict' })),
    key,
  );
}

/** Lets the origin store that many bytes more than it does now, until the session is detached. */
async function limit(page: Page, bytes = ROOM_BYTES): Promise<CDPSession> {
  const usage = await page.evaluate(async () => (await navigator.storage.estimate()).usage ?? 0);
  return profile.overrideQuota(page, usage + bytes);
}

/** The acknowledged and the refused writes, by key. */
interface Filled {
  readonly acknowledged: number[];
  readonly refused: number[];
  readonly codes: string[];
}

/** Writes 20 KB values under the keys from 1000 on until ten were refused; at most 8 MB. */
function fill(page: Page): Promise<Filled> {
  return page.evaluate(async () => {
    const acknowledged: number[] = [];
    const refused: number[] = [];
    const codes = new Set<string>();
    for (let key = 1000; key < 1400 && refused.length < 10; key++) {
      const code = await codeOf(() => full.set(key, longValue(key), { durability: 'strict' }));
      (code === 'ok' ? acknowledged : refused).push(key);
      if (code !== 'ok') codes.add(code);
    }
    return { acknowledged, refused, codes: [...codes] };
  });
}

async function fillSync(worker: Worker): Promise<Filled> {
  const acknowledged: number[] = [];
  const refused: number[] = [];
  const codes = new Set<string>();
  for (let key = 1000; key < 1400 && refused.length < 10; key++) {
    const code = await endingCode(worker, key);
    (code === 'ok' ? acknowledged : refused).push(key);
    if (code !== 'ok') codes.add(code);
  }
  return { acknowledged, refused, codes: [...codes] };
}

/** Every entry, as its key and whether its value is the one that was written. */
function contents(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const keys: number[] = [];
    for await (const [key, value] of full.entries()) {
      const expected = key < 1000 ? `small ${key}` : longValue(key);
      keys.push(value === expected && (await full.get(key)) === expected ? key : -1);
    }
    return keys;
  });
}

function contentsSync(worker: Worker): Promise<number[]> {
  return worker.evaluate(() =>
    Array.from(fullSync.entries(), ([key, value]) => {
      const expected = key < 1000 ? `small ${key}` : longValue(key);
      return value === expected && fullSync.get(key) === expected ? key : -1;
    }),
  );
}

const SMALL = Array.from({ length: BEFORE }, (_, i) => i);

test('a page that fills its quota is refused, loses nothing, deletes, and continues when there is room', async () => {
  const { page, errors } = await profile.openPage();
  const open = async (): Promise<string> =>
    page.evaluate(async () => {
      globalThis.full = await varve.open<number, string>('full', { memoryBytes: 2 << 20 });
      return full.recovery.state;
    });
  await open();
  await page.evaluate(async (count) => {
    await full.setMany(Array.from({ length: count }, (_, i) => [i, `small ${i}`] as const));
  }, BEFORE);
  const limited = await limit(page);

  const filled = await fill(page);
  expect(filled.codes).toEqual(['VARVE_STORAGE_FULL']);
  expect(filled.refused).toHaveLength(10);
  expect(filled.acknowledged.length).toBeGreaterThan(10);
  const kept = [...SMALL, ...filled.acknowledged];
  expect(await contents(page)).toEqual(kept);

  // Deletes, in their own batches and alone, and one that is flushed.
  await page.evaluate(async () => {
    await full.delete(0);
    await full.batch().delete(1).delete(2).commit();
    await full.delete(3, { durability: 'strict' });
    await full.deleteRange({ gte: 4, lt: 10 }, { durability: 'strict' });
  });
  expect(await contents(page)).toEqual(kept.slice(10));

  // A full store closes, and opens with all of it.
  await page.evaluate(() => full.close());
  expect(await open()).toBe('clean');
  expect(await contents(page)).toEqual(kept.slice(10));
  await page.evaluate(() => full.delete(10));
  expect(await contents(page)).toEqual(kept.slice(11));

  await limited.detach();
  const more = await page.evaluate(async () => {
    for (let key = 2000; key < 2100; key++) await full.set(key, longValue(key));
    await full.set(0, 'small 0', { durability: 'strict' });
    await full.close();
    return Array.from({ length: 100 }, (_, i) => 2000 + i);
  });
  expect(await open()).toBe('clean');
  expect(await contents(page)).toEqual([0, ...kept.slice(11), ...more]);
  await page.evaluate(() => full.close());
  expect(errors).toEqual([]);
});

test('a worker with the synchronous API that fills its quota is refused, loses nothing, deletes, and continues', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(page);
  const open = async (): Promise<string> =>
    worker.evaluate(async () => {
      globalThis.fullSync = await varveSync.open<number, string>('full sync', { memoryBytes: 2 << 20 });
      return fullSync.recovery.state;
    });
  await open();
  await worker.evaluate((count) => {
    fullSync.setMany(Array.from({ length: count }, (_, i) => [i, `small ${i}`] as const));
  }, BEFORE);
  const limited = await limit(page);

  const filled = await fillSync(worker);
  expect(filled.codes).toEqual(['VARVE_STORAGE_FULL']);
  expect(filled.refused).toHaveLength(10);
  expect(filled.acknowledged.length).toBeGreaterThan(10);
  const kept = [...SMALL, ...filled.acknowledged];
  expect(await contentsSync(worker)).toEqual(kept);

  await worker.evaluate(() => {
    fullSync.delete(0, { durability: 'strict' });
    fullSync.batch().delete(1).delete(2).commit({ durability: 'relaxed' });
    fullSync.deleteRange({ gte: 3, lt: 10 }, { durability: 'strict' });
  });
  expect(await contentsSync(worker)).toEqual(kept.slice(10));
  await worker.evaluate(() => fullSync.close());
  expect(await open()).toBe('clean');
  expect(await contentsSync(worker)).toEqual(kept.slice(10));

  await limited.detach();
  for (let key = 2000; key < 2100; key++) expect(await endingCode(worker, key)).toBe('ok');
  await worker.evaluate(() => fullSync.close());
  expect(await open()).toBe('clean');
  expect(await contentsSync(worker)).toEqual([...kept.slice(10), ...Array.from({ length: 100 }, (_, i) => 2000 + i)]);
  await worker.evaluate(() => fullSync.close());
  expect(errors).toEqual([]);
});

// A write reserves its room before it returns, so the write that does not fit is refused, and only that one.
test('buffered writes that do not fit are refused when they are made, and those that returned are there', async () => {
  const { page } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(page);
  await worker.evaluate(async () => {
    globalThis.fullSync = await varveSync.open<number, string>('full buffered', { memoryBytes: 2 << 20 });
    fullSync.set(0, 'small 0', { durability: 'strict' });
  });
  const limited = await limit(page);
  const found = await worker.evaluate(async () => {
    const written: number[] = [];
    const codes = new Set<string>();
    for (let key = 1000; key < 1400; key++) {
      const code = await codeOf(() => fullSync.set(key, longValue(key)));
      if (code === 'ok') written.push(key);
      else codes.add(code);
      if (key % 3 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    const next = await codeOf(() => fullSync.get(0));
    const deleted = await codeOf(() => fullSync.delete(0));
    await fullSync.close();
    return { written, codes: [...codes], next, deleted };
  });
  expect([found.codes, found.next, found.deleted]).toEqual([['VARVE_STORAGE_FULL'], 'ok', 'ok']);
  await limited.detach();
  await worker.evaluate(async () => {
    globalThis.fullSync = await varveSync.open<number, string>('full buffered');
  });
  expect(await contentsSync(worker)).toEqual(found.written);
  expect(found.written.length).toBeGreaterThan(10);
});

// Not in IndexedDB instead: there is no more room there, and the store would stay in it for ever.
test('a new store for which there is no room is refused as full, leaves nothing, and goes to OPFS when there is room', async () => {
  const { page, errors } = await profile.openPage('/varve.html');
  const limited = await limit(page, 200_000);
  for (const storage of [undefined, 'opfs'] as const) {
    const refused = await page.evaluate(
      (where) => varve.open('no room', { storage: where }).catch(({ code, message }) => `${code} ${message}`),
      storage,
    );
    expect(refused).toBe('VARVE_STORAGE_FULL There is no room to create the store. Free space and open it again.');
  }
  await limited.detach();
  expect(await page.evaluate(() => varve.listStores())).not.toContain('no room');
  const found = await page.evaluate(async () => {
    const db = await varve.open('no room');
    await db.close();
    return [db.storage.kind, db.recovery.state];
  });
  expect(found).toEqual(['opfs', 'new']);
  expect(errors).toEqual([]);
});
