// check() and repair() of the built package, in a real browser. A slot file is damaged through OPFS. The store refuses to open, and the
// error says what to do. The repair recovers the intact data.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, type Profile } from './support/profile.ts';

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile.close());

test('a store that a damaged log keeps from opening is salvaged, and found sound by a check', async () => {
  const { page, errors } = await profile.openPage();
  const seen = await page.evaluate(async () => {
    const db = await varve.open('broken');
    await db.setMany(Array.from({ length: 5000 }, (_, number) => [['item', number], `value ${number}`]));
    await db.compact();
    await db.set('first', 1, { durability: 'strict' });
    await db.set('second', 2, { durability: 'strict' });
    const progress: number[] = [];
    const sound = await db.check({ onProgress: ({ done, total }) => progress.push(done / total) });
    await db.close();

    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('varve');
    const folder = await root.getDirectoryHandle('broken');
    for await (const file of folder.values()) {
      if (file.kind !== 'file') continue;
      const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
      // WAL segments: each begins at a page, and its first record begins after its header (48 bytes).
      const pages = Array.from({ length: Math.floor(bytes.length / 4096) }, (_, page) => page * 4096);
      const isSegment = (at: number): boolean => String.fromCharCode(...bytes.slice(at, at + 4)) === 'VRVL';
      const segments = pages.filter(isSegment);
      if (segments.length === 0) continue;
      const writable = await file.createWritable({ keepExistingData: true });
      for (const at of segments) {
        await writable.write({ type: 'write', position: at + 48 + 26, data: new Uint8Array([0xff, 0xff]) });
      }
      await writable.close();
    }
    const refusal = await varve.open('broken').catch((error: { code: string; message: string }) => error);
    const { code, message } = refusal as { code: string; message: string };

    const found = await varve.check('broken');
    const report = await varve.repair('broken');
    const repaired = await varve.open(report.name);
    const [count, item, again] = await Promise.all([repaired.count(), repaired.get(['item', 4321]), repaired.check()]);
    await repaired.close();
    const names = await varve.listStores();
    return { sound, progress: progress.at(-1), code, message, found, report, count, item, again, names };
  });
  expect(seen.sound).toMatchObject({ ok: true, problems: [] });
  expect(seen.sound.entries).toBeGreaterThanOrEqual(5000);
  expect(seen.progress).toBe(1);
  expect(seen.code).toBe('VARVE_CORRUPT');
  expect(seen.message).toContain('repair()');
  expect(seen.found).toMatchObject({ ok: false, problems: [{ kind: 'log' }], withoutKey: false });
  expect(seen.report.name).toBe('broken-repaired');
  expect(seen.report.lost.length).toBeGreaterThan(0);
  expect(seen.count).toBe(seen.report.entries);
  expect(seen.count).toBeGreaterThanOrEqual(5000);
  expect(seen.item).toBe('value 4321');
  expect(seen.again).toMatchObject({ ok: true, problems: [] });
  expect(seen.names).toEqual(['broken', 'broken-repaired']);
  expect(errors).toEqual([]);
});
