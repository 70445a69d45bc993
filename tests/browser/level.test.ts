// `varve/abstract-level` in a page, over OPFS, under the suite of abstract-level.

import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type {} from './fixtures/level.ts';
import { newProfile, type OpenPage, type Profile } from './support/profile.ts';

let profile: Profile;
let page: Page;
let errors: OpenPage['errors'];

beforeAll(async () => {
  profile = await newProfile();
  ({ page, errors } = await profile.openPage('/level.html'));
});

afterAll(async () => {
  await profile?.close();
});

test('passes every test of the suite', async () => {
  const { storage, passed, failed } = await page.evaluate(() => globalThis.level.runSuite());
  expect([storage, failed, errors]).toEqual(['opfs', [], []]);
  expect(passed).toBeGreaterThan(1400);
});

test('has the entries of browser-level after migrate, which is not done again in the next visit', async () => {
  const copied = await page.evaluate(async () => {
    const { BrowserLevel, VarveLevel, migrate } = globalThis.level;
    const old = new BrowserLevel('notes');
    await old.batch(Array.from({ length: 200 }, (_, i) => ({ type: 'put', key: `note ${i}`, value: `text ${i}` })));
    const db = new VarveLevel('notes');
    const report = await migrate(db);
    const [entries, wanted] = [await db.iterator().all(), await old.iterator().all()];
    await db.del('note 1');
    await db.close();
    return { report, isSame: JSON.stringify(entries) === JSON.stringify(wanted) };
  });
  expect(copied).toEqual({ report: { copied: 200, state: 'copied' }, isSame: true });
  await page.reload();
  const again = await page.evaluate(async () => {
    const db = new globalThis.level.VarveLevel('notes');
    return [await globalThis.level.migrate(db), await db.get('note 1'), await db.get('note 2')];
  });
  expect(again).toEqual([{ copied: 0, state: 'before' }, undefined, 'text 2']);
});
