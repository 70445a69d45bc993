// `varve/zero` below Replicache in two tabs, over OPFS: each tab gets what the other one stores, and a later one has all of it.

import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type {} from './fixtures/zero.ts';
import { newProfile, type OpenPage, type Profile } from './support/profile.ts';

let profile: Profile;
const opened: OpenPage[] = [];

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(async () => {
  await profile?.close();
  expect(opened.flatMap(({ errors }) => errors)).toEqual([]);
});

async function openTab(): Promise<Page> {
  const tab = await profile.openPage('/zero.html');
  opened.push(tab);
  return tab.page;
}

const notes = (tab: Page): Promise<string[]> => tab.evaluate(() => globalThis.zero.notes());

test('mutations of two tabs are in both, and in a tab after both are gone; no increment is lost', async () => {
  const tabs = [await openTab(), await openTab()];
  const wanted: string[] = [];
  for (const [i, tab] of tabs.entries()) {
    const names = Array.from({ length: 20 }, (_, note) => `${i}${String.fromCharCode(97 + note)}`);
    await tab.evaluate((names) => Promise.all(names.map((name) => globalThis.zero.add(name))), names);
    wanted.push(...names.map((name) => `note/${name}`));
  }
  for (const tab of tabs) await expect.poll(() => notes(tab), { timeout: 60_000 }).toEqual(wanted);
  await Promise.all(
    tabs.map((tab) => tab.evaluate(() => Promise.all(Array.from({ length: 50 }, () => globalThis.zero.increment())))),
  );
  expect(await tabs[0]?.evaluate(() => globalThis.zero.count())).toBe(100);
  for (const tab of tabs) await tab.close();
  const later = await openTab();
  expect(await notes(later)).toEqual(wanted);
  expect(await later.evaluate(() => globalThis.zero.count())).toBe(100);
});
