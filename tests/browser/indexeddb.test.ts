// Stores in IndexedDB, in a real browser. They are opened in a page (beside it and on its main thread), a dedicated worker, a service
// worker and a shared worker. They are killed and evicted, and run out of room.

import type { Page, Worker } from 'playwright';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

declare global {
  /** The store of the test of a full origin, in its page. */
  var crammed: import('varve').Store<number, Uint8Array>;
}

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
    let db = await varve.open<number, Uint8Array>('many', { storage: 'indexeddb', memoryBytes: 2 * 1024 * 1024 });
    for (let from = 0; from < 20_000; from += 500) {
      await db.setMany(Array.from({ length: 500 }, (_, i) => [(from + i) * 7 - (from % 3), value(from + i)] as const));
    }
    await db.compact();
    const { levels } = await db.stats();
    await db.close();
    db = await varve.open<number, Uint8Array>('many', { memoryBytes: 2 * 1024 * 1024 });
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

/** Writes into a store in IndexedDB, closes it, and opens it again; in the realm that evaluates this. */
async function keepHere(): Promise<unknown[]> {
  const name = `here ${Math.random()}`;
  const db = await varve.open<number, string>(name, { storage: 'indexeddb' });
  await Promise.all(Array.from({ length: 3000 }, (_, i) => db.set(i, `value ${i}`)));
  await db.set(-1, 'strict', { durability: 'strict' });
  await db.compact();
  await db.close();
  const again = await varve.open<number, string>(name);
  const keys: number[] = [];
  for await (const key of again.keys({ lt: 3 })) keys.push(key);
  const answer = [again.storage.kind, again.recovery.state, await again.count(), await again.get(2999), keys];
  await again.close();
  await varve.deleteStore(name);
  return answer;
}

const KEPT = ['indexeddb', 'clean', 3001, 'value 2999', [-1, 0, 1, 2]];

test('the main thread of a page keeps stores in IndexedDB by itself', async () => {
  const { page: own } = await profile.openPage('/inline.html');
  expect(await own.evaluate(keepHere)).toEqual(KEPT);
  expect(own.workers()).toEqual([]);
  await own.close();
});

// Story: Chromium refuses the locks, too, where a page may store nothing. `open` rejected with VARVE_INTERNAL.
test('a page that may store nothing has stores in memory', async () => {
  const own = await profile.context.newPage();
  await own.route('**/*', async (route) => {
    const response = await route.fetch();
    const policy = { 'content-security-policy': 'sandbox allow-scripts', 'access-control-allow-origin': '*' };
    await route.fulfill({ response, headers: { ...response.headers(), ...policy } });
  });
  await own.goto(`${profile.origin}/inline.html`);
  const found = await own.evaluate(async () => {
    const db = await varve.open('nowhere');
    await db.set('key', 'value');
    const refused = await varve.open('nowhere', { storage: 'indexeddb' }).catch((error) => error.code);
    return [db.storage.kind, db.storage.reason, await db.get('key'), refused];
  });
  expect(found).toEqual(['memory', expect.stringContaining('refuses storage'), 'value', 'VARVE_UNSUPPORTED']);
  await own.close();
});

test('a dedicated worker keeps stores in IndexedDB by itself', async () => {
  const { page: own } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(own, '/service-worker.js');
  expect(await worker.evaluate(keepHere)).toEqual(KEPT);
  await own.close();
});

test('a dedicated worker keeps stores in IndexedDB through a worker of its own', async () => {
  const { page: own } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(own, '/varve-worker.js');
  expect(await worker.evaluate(keepHere)).toEqual(KEPT);
  await own.close();
});

test('a store with a chunk that is gone is repaired into another one in IndexedDB', async () => {
  const found = await page.evaluate(async () => {
    const db = await varve.open<number, Uint8Array>('damaged', { storage: 'indexeddb' });
    await db.setMany(Array.from({ length: 5000 }, (_, i) => [i, crypto.getRandomValues(new Uint8Array(200))] as const));
    await db.compact();
    await db.close();
    await new Promise<void>((resolve, reject) => {
      const opening = indexedDB.open('varve:damaged');
      opening.onsuccess = () => {
        const transaction = opening.result.transaction('chunks', 'readwrite');
        const chunks = transaction.objectStore('chunks');
        const keys = chunks.getAllKeys();
        keys.onsuccess = () => {
          // The third chunk of every slot: in the table it has blocks.
          for (const key of keys.result) if ((key as number[])[1] === 3) chunks.delete(key);
        };
        transaction.oncomplete = () => {
          opening.result.close();
          resolve();
        };
        transaction.onabort = () => reject(transaction.error);
      };
    });
    const report = await varve.repair('damaged');
    const again = await varve.open<number, Uint8Array>(report.name);
    const count = await again.count();
    const { problems } = await again.check();
    await again.close();
    return { kind: again.storage.kind, isCounted: count === report.entries, count, lost: report.lost.length, problems };
  });
  expect(found).toMatchObject({ kind: 'indexeddb', isCounted: true, problems: [] });
  expect(found.lost).toBeGreaterThan(0);
  expect(found.count).toBeGreaterThan(3000);
  expect(found.count).toBeLessThan(5000);
});

test('a service worker makes no second store beside one in OPFS', async () => {
  await page.evaluate(async () => (await varve.open('in opfs')).close());
  const worker = await serviceWorker();
  expect(await worker.evaluate(() => codeOf(() => varve.open('in opfs')))).toBe('VARVE_UNSUPPORTED');
  expect(await worker.evaluate(() => varve.listStores())).toContain('in opfs');
});

/** The error when a store in OPFS is opened, in the realm that evaluates this. */
async function refusal(): Promise<string> {
  try {
    const db = await varve.open('led by a page');
    await db.close();
    return `opened in ${db.storage.kind}`;
  } catch (error) {
    const { code, message } = error as import('varve').VarveError;
    return `${code}: ${message}`;
  }
}

test('a store in OPFS is refused where it could not be opened alone, also while a page has it open', async () => {
  await page.evaluate(async () => {
    globalThis.db = await varve.open('led by a page');
    await globalThis.db.set(1, 'a');
  });
  const worker = await serviceWorker();
  const refused = await worker.evaluate(refusal);
  expect(refused).toMatch(
    /^VARVE_UNSUPPORTED: .*only dedicated workers.* open it with storage: 'indexeddb' on both sides/,
  );
  const { page: own } = await profile.openPage('/inline.html');
  expect(await own.evaluate(refusal)).toBe(refused);
  await own.close();
  // The leader continues, and another page with its own worker shares the store as before.
  expect(await page.evaluate(async () => [await globalThis.db.get(1), globalThis.db.storage.kind])).toEqual([
    'a',
    'opfs',
  ]);
  const { page: other } = await profile.openPage();
  expect(await other.evaluate(refusal)).toBe('opened in opfs');
  await other.close();
  await page.evaluate(() => globalThis.db.close());
  expect(await worker.evaluate(refusal)).toBe(refused);
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

test('stats report the use of the origin, and persist asks the browser to keep it', async () => {
  const reported = await page.evaluate(async () => {
    const db = await varve.open('kept', { storage: 'indexeddb' });
    await db.set('k', new Uint8Array(100_000));
    const { origin } = await db.stats();
    const isPersistent = await db.persist();
    const after = await db.stats();
    await db.close();
    return { origin, agrees: after.origin?.persisted === isPersistent };
  });
  expect(reported).toMatchObject({ origin: { usageBytes: expect.any(Number), persisted: false }, agrees: true });
  expect(reported.origin?.quotaBytes).toBeGreaterThan(reported.origin?.usageBytes ?? Number.NaN);
});

test('after a browser cleared IndexedDB under an open store, the store is reported as lost, not new', async () => {
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

test('a full origin refuses writes without room for them; the session continues, and writes when there is room again', async () => {
  // A separate browser: Chromium remembers for half a minute how much room IndexedDB has.
  const small = await newProfile();
  onTestFinished(() => small.close());
  const { page: own } = await small.openPage();
  await small.overrideQuota(own, 12 * 1024 * 1024);
  const filled = await own.evaluate(async () => {
    globalThis.crammed = await varve.open<number, Uint8Array>('full', { storage: 'indexeddb' });
    let written = 0;
    const code = await codeOf(async () => {
      for (; written < 400; written++) await crammed.set(written, crypto.getRandomValues(new Uint8Array(60_000)));
    });
    const read = await crammed.getMany([0, written - 1, written]);
    const lengths = read.map((value) => value?.length);
    return { code, written, lengths, count: await crammed.count() };
  });
  const { written } = filled;
  expect(filled).toEqual({ code: 'VARVE_STORAGE_FULL', written, lengths: [60_000, 60_000, undefined], count: written });
  expect(written).toBeGreaterThan(20);
  // If the browser lets the write through, it is acknowledged; if not, it is refused. Both results are right.
  const deleted = await own.evaluate(() => codeOf(() => crammed.delete(0)));
  console.log(`a delete in a full origin: ${deleted}`);
  const left = await own.evaluate(async () => [await crammed.has(0), await crammed.count()]);
  expect(left).toEqual(deleted === 'ok' ? [false, written - 1] : [true, written]);
  await small.overrideQuota(own, 200 * 1024 * 1024);
  await expect
    .poll(() => own.evaluate(() => codeOf(() => crammed.set(1000, new Uint8Array(60_000)))), {
      timeout: 60_000,
      interval: 1000,
    })
    .toBe('ok');
  const after = await own.evaluate(async () => {
    for (let i = 0; i < 50; i++) await crammed.set(2000 + i, crypto.getRandomValues(new Uint8Array(60_000)));
    await crammed.compact();
    const count = await crammed.count();
    await crammed.close();
    const again = await varve.open<number, Uint8Array>('full');
    const counts = [count, await again.count()];
    const { problems } = await again.check();
    await again.close();
    return { counts, problems };
  });
  const all = written + 51 - (deleted === 'ok' ? 1 : 0);
  expect(after).toEqual({ counts: [all, all], problems: [] });
});

test('acknowledged writes survive a kill of the browser', async () => {
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
