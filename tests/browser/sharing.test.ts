// One store in several tabs of a browser: whoever is gone, the others go on.

import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { newProfile, type Profile } from './support/profile.ts';

let profile: Profile;
const pages: Page[] = [];

declare global {
  /** The store that a test leaves open in a page. */
  var db: import('varve').Store<number, string>;
}

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

afterEach(() => Promise.all(pages.splice(0).map((page) => page.close())));

async function openTab(name: string): Promise<Page> {
  const { page } = await profile.openPage();
  pages.push(page);
  await page.evaluate(async (store) => {
    globalThis.db = await varve.open<number, string>(store);
  }, name);
  return page;
}

const sharing = (page: Page) => page.evaluate(async () => (await db.stats()).sharing);

test('tabs share a store over ports, and the next one leads when the leader is closed', async () => {
  const first = await openTab('shared');
  const second = await openTab('shared');
  const third = await openTab('shared');
  await first.evaluate(() => db.set(1, 'one'));
  expect(await second.evaluate(() => db.get(1))).toBe('one');
  expect(await sharing(first)).toEqual({ leads: true, via: 'worker', clients: 3 });
  expect(await sharing(second)).toEqual({ leads: false, via: 'port', clients: 3 });
  expect(await sharing(third)).toEqual({ leads: false, via: 'port', clients: 3 });
  await first.close();
  await second.evaluate(() => db.set(2, 'two'));
  await third.evaluate(() => db.set(3, 'three'));
  expect(await second.evaluate(() => db.getMany([1, 2, 3]))).toEqual(['one', 'two', 'three']);
  const after = [await sharing(second), await sharing(third)];
  expect(after.filter((one) => one?.leads)).toHaveLength(1);
  expect(after.map((one) => one?.clients)).toEqual([2, 2]);
});
