// Stores in IndexedDB, in a real browser: in a page, a service worker and a shared worker; killed, evicted, out of room.

import type { Page, Worker } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, type Profile } from './support/profile.ts';

let profile: Profile;
let page: Page;

beforeAll(async () => {
  profile = await newProfile();
  ({ page } = await profile.openPage());
});

afterAll(() => profile?.close());

/** The site's service worker, active. */
async function serviceWorker(): Promise<Worker> {
  const [running] = profile.context.serviceWorkers();
  if (running !== undefined) return running;
  const started = profile.context.waitForEvent('serviceworker');
  await page.evaluate(async () => {
    await navigator.serviceWorker.register('/service-worker.js', { type: 'module' });
    await navigator.serviceWorker.ready;
  });
  return started;
}

test('every type of key and value comes back from IndexedDB', async () => {
  const wrong = await page.evaluate(async () => {
    const entries = everyType();
    const db = await varve.open('types', { storage: 'indexeddb' });
    await db.setMany(entries);
    await db.close();
    const again = await varve.open('types');
    const bad: string[] = again.storage.kind === 'indexeddb' && again.recovery.state === 'clean' ? [] : ['not opened'];
    for (const [key, value] of entries) if (!isSame(await again.get(key), value)) bad.push(String(key));
    await again.close();
    return bad;
  });
  expect(wrong).toEqual([]);
});

test('a store of many tables is flushed, merged, scanned, checked and opened again', async () => {
  const found = await page.evaluate(async () => {
    const value = (i: number): Uint8Array => Uint8Array.from({ length: 1000 }, (_, at) => (i * 31 + at * at) & 255);
    let db = await varve.open<number, Uint8Array>('many', { storage: 'indexeddb', memory: 2 * 1024 * 1024 });
    for (let from = 0; from < 20_000; from += 500) {
      await db.setMany(Array.from({ length: 500 }, (_, i) => [(from + i) * 7 - (from % 3), value(from + i)] as const));
    }
    await db.compact();
    const { levels } = await db.stats();
    await db.close();
    db = await varve.open<number, Uint8Array>('many', { memory: 2 * 1024 * 1024 });
    let count = 0;
    let last = -1;
    let isSorted = true;
    for await (const [key] of db.entries()) {
      count++;
      isSorted &&= key > last;
      last = key;
    }
    const many = await db.getMany(Array.from({ length: 300 }, (_, i) => i * 7));
    const report = await db.check();
    await db.close();
    return {
      tables: levels.reduce((sum, level) => sum + level.tables, 0),
      count,
      isSorted,
      isFound: many.slice(1).filter((one) => one !== undefined).length,
      problems: report.problems,
    };
  });
  expect(found).toMatchObject({ count: 20_000, isSorted: true, problems: [] });
  expect(found.tables).toBeGreaterThan(0);
  expect(found.isFound).toBeGreaterThan(290);
});

test('a service worker keeps stores in IndexedDB, and a page opens them', async () => {
  const worker = await serviceWorker();
  const kept = await worker.evaluate(async () => {
    const db = await varve.open<string, number>('inbox');
    await Promise.all(Array.from({ length: 100 }, (_, i) => db.set(`message ${i}`, i, { durability: 'strict' })));
    const { storage } = db;
    await db.close();
    return storage;
  });
  expect(kept).toMatchObject({ kind: 'indexeddb', reason: expect.stringContaining('dedicated workers') });
  const seen = await page.evaluate(async () => {
    const db = await varve.open<string, number>('inbox');
    const answer = [db.storage.kind, await db.count(), await db.get('message 99')];
    await db.close();
    return answer;
  });
  expect(seen).toEqual(['indexeddb', 100, 99]);
});

test('a service worker makes no second store beside one in OPFS', async () => {
  await page.evaluate(async () => (await varve.open('in opfs')).close());
  const worker = await serviceWorker();
  expect(await worker.evaluate(() => codeOf(() => varve.open('in opfs')))).toBe('VARVE_UNSUPPORTED');
  expect(await worker.evaluate(() => varve.listStores())).toContain('in opfs');
});

test('a shared worker keeps stores in IndexedDB', async () => {
  const answer = await page.evaluate(async () => {
    const { port } = new SharedWorker('/shared-worker.js', { type: 'module' });
    port.postMessage(['shared', [['a', 1]]]);
    return new Promise((resolve) => {
      port.onmessage = ({ data }) => resolve(data);
    });
  });
  expect(answer).toEqual({ kind: 'indexeddb', found: [['a', 1]] });
});

test('stats tell what the origin uses, and persist asks for it to be kept', async () => {
  const told = await page.evaluate(async () => {
    const db = await varve.open('kept', { storage: 'indexeddb' });
    await db.set('k', new Uint8Array(100_000));
    const { origin } = await db.stats();
    const isPersistent = await db.persist();
    const after = await db.stats();
    await db.close();
    return { origin, agrees: after.origin?.persisted === isPersistent };
  });
  expect(told).toMatchObject({ origin: { usageBytes: expect.any(Number), persisted: false }, agrees: true });
  expect(told.origin?.quotaBytes).toBeGreaterThan(told.origin?.usageBytes ?? Number.NaN);
});

test('a browser that clears IndexedDB under an open store is told of; what was there is lost, not new', async () => {
  const session = await profile.context.newCDPSession(page);
  await page.evaluate(async () => {
    globalThis.db = await varve.open<number, string>('cleared', { storage: 'indexeddb' });
    await db.set(1, 'here');
  });
  await session.send('Storage.clearDataForOrigin', { origin: profile.origin, storageTypes: 'indexeddb' });
  const after = await page.evaluate(async () => {
    const code = await codeOf(() => db.set(2, 'there'));
    await db.close();
    const again = await varve.open('cleared', { storage: 'indexeddb' });
    const { state } = again.recovery;
    await again.close();
    return [code, state];
  });
  expect(after).toEqual(['VARVE_LOCKED', 'lost']);
  await session.detach();
});

test('a full origin refuses a write, and the store opens again with all that was acknowledged', async () => {
  // A browser of its own: Chromium remembers for half a minute how much room IndexedDB has.
  const small = await newProfile();
  const { page: own } = await small.openPage();
  const session = await small.overrideQuota(own, 12 * 1024 * 1024);
  const filled = await own.evaluate(async () => {
    const db = await varve.open<number, Uint8Array>('full', { storage: 'indexeddb' });
    let written = 0;
    const code = await codeOf(async () => {
      for (; written < 400; written++) await db.set(written, crypto.getRandomValues(new Uint8Array(60_000)));
    });
    await db.close().catch(() => undefined);
    return { code, written };
  });
  await session.detach();
  expect(filled.code).toBe('VARVE_STORAGE_FULL');
  expect(filled.written).toBeGreaterThan(20);
  const count = await own.evaluate(async () => {
    const db = await varve.open<number, Uint8Array>('full');
    const found = await db.count();
    await db.close();
    await varve.deleteStore('full');
    return found;
  });
  expect(count).toBe(filled.written);
  await small.close();
});

test('what was acknowledged survives the death of the browser', async () => {
  await page.evaluate(async () => {
    globalThis.db = await varve.open<number, string>('killed', { storage: 'indexeddb' });
    for (let i = 0; i < 200; i++) await db.set(i, `value ${i}`, { durability: i % 2 === 0 ? 'strict' : 'relaxed' });
    for (let i = 200; i < 1000; i++) db.set(i, `value ${i}`).catch(() => undefined);
  });
  await profile.kill();
  ({ page } = await profile.openPage());
  const found = await page.evaluate(async () => {
    const db = await varve.open<number, string>('killed');
    const count = await db.count();
    const wrong: number[] = [];
    for (let i = 0; i < 200; i++) if ((await db.get(i)) !== `value ${i}`) wrong.push(i);
    await db.close();
    return { count, wrong, kind: db.storage.kind };
  });
  expect(found).toMatchObject({ wrong: [], kind: 'indexeddb' });
  expect(found.count).toBeGreaterThanOrEqual(200);
});
