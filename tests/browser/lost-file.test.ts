// Files that are removed under a store. Chromium keeps long values of IndexedDB in files of their own: one of these is removed, as a
// cleaner or a virus scanner does. And somebody deletes all data of the site while a page has a store open.

import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, type Profile } from './support/profile.ts';

declare global {
  /** The store that a page has open when its files are deleted. */
  var cleared: import('varve').Store<string, number>;
}

const ENTRIES = 300;
const CHUNK_BYTES = 64 * 1024;

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

/** The files of chunks below a folder. */
function chunkFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return chunkFiles(path);
    const bytes = path.includes('.indexeddb.blob') ? statSync(path).size : 0;
    // The browser adds a header. Reserved room is longer.
    return bytes >= CHUNK_BYTES && bytes < CHUNK_BYTES + 4096 ? [path] : [];
  });
}

test('a file of IndexedDB that is gone costs the reads of its own keys, and a repair saves the others', async () => {
  const before = await profile.openPage();
  await before.page.evaluate(async (count) => {
    const db = await varve.open<number, Uint8Array>('notes', { storage: 'indexeddb' });
    const bytes = (): Uint8Array => crypto.getRandomValues(new Uint8Array(4000));
    await db.setMany(Array.from({ length: count }, (_, i) => [i, bytes()] as const));
    await db.compact();
    await db.close();
  }, ENTRIES);
  await profile.kill((folder) => {
    const files = chunkFiles(join(folder, 'Default', 'IndexedDB')).sort();
    expect(files.length).toBeGreaterThan(10);
    rmSync(files[Math.floor(files.length / 2)] as string);
  });
  const { page } = await profile.openPage();
  const found = await page.evaluate(async (count) => {
    const db = await varve.open<number, Uint8Array>('notes');
    const failed = async (): Promise<number> => {
      let failures = 0;
      for (let key = 0; key < count; key++) {
        try {
          if ((await db.get(key))?.length !== 4000) return Number.NaN;
        } catch (error) {
          if ((error as { code?: string }).code !== 'VARVE_IO') throw error;
          failures++;
        }
      }
      return failures;
    };
    const failures = [await failed(), await failed()];
    await db.set(count, new Uint8Array(4000));
    await db.delete(count);
    const { ok } = await db.check();
    await db.close();
    const isSound = (await varve.check('notes')).ok;
    const { entries, lost } = await varve.repair('notes');
    return { failures, ok, isSound, entries, lost: lost.length };
  }, ENTRIES);
  const [failures = 0] = found.failures;
  expect(failures).toBeGreaterThan(0);
  expect(failures).toBeLessThan(40);
  expect(found).toEqual({
    failures: [failures, failures],
    ok: false,
    isSound: false,
    entries: ENTRIES - failures,
    lost: expect.any(Number),
  });
});

// Chromium deletes the files, but whoever has them open can still write to them. A page went on for hours, and every write was acknowledged.
test.each(['opfs', 'indexeddb'] as const)(
  'a store in %s whose site data was deleted takes no more writes',
  async (storage) => {
    const { page } = await profile.openPage();
    await page.evaluate(async (storage) => {
      globalThis.cleared = await varve.open<string, number>('cleared', { storage });
      await cleared.set('a', 1);
    }, storage);
    const session = await page.context().newCDPSession(page);
    await session.send('Storage.clearDataForOrigin', { origin: profile.origin, storageTypes: 'all' });
    const code = storage === 'opfs' ? 'VARVE_POISONED' : 'VARVE_LOCKED';
    await expect.poll(() => page.evaluate(() => codeOf(() => cleared.set('b', 2))), { timeout: 20_000 }).toBe(code);
    // Before that, the page has the locks of the storage that was deleted, and its workers have those of the new one.
    await page.reload();
    const again = await page.evaluate(async (storage) => {
      const db = await varve.open<string, number>('cleared', { storage });
      const found = [db.recovery.state, await db.get('a')];
      await db.close();
      return found;
    }, storage);
    expect(again).toEqual(['new', undefined]);
    await page.close();
  },
);
