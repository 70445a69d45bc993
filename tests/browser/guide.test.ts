// The pages of the guide, as `npm start` serves them.

import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildGuide } from '../../scripts/guide.mjs';
import { STRICT_POLICY, serve } from '../../scripts/server.mjs';
import { root } from '../../scripts/tools.mjs';
import { violationsOf } from './support/axe.ts';
import { newProfile, type Profile } from './support/profile.ts';

const FOLDER = join(root, 'build', 'test-guide');

let profile: Profile;
let site: Awaited<ReturnType<typeof serve>>;
let page: Page;
let addresses: string[];

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  buildGuide(FOLDER);
  profile = await newProfile();
  site = await serve({ mounts: [{ path: '/guide/', folder: FOLDER, headers: STRICT_POLICY }] });
  page = await profile.context.newPage();
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.html'));
  addresses = names.map((name) => `${site.origin}/guide/${name}`);
});

afterAll(async () => {
  await profile?.close();
  await site?.close();
});

const linksOf = (): Promise<string[]> =>
  page.locator('main a').evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href));

test('the first page links to every page, and every link leads to a page and a heading that exist', async () => {
  const places = new Set(addresses);
  const links = new Set<string>();
  for (const address of addresses) {
    await page.goto(address);
    for (const link of await linksOf()) links.add(link);
    const ids = await page.locator('main [id]').evaluateAll((all) => all.map(({ id }) => id));
    for (const id of ids) places.add(`${address}#${id}`);
  }
  expect([...links].filter((link) => link.startsWith(site.origin) && !places.has(link))).toEqual([]);

  await page.goto(`${site.origin}/guide/`);
  const others = addresses.filter((address) => !address.endsWith('/index.html'));
  expect(new Set(await linksOf())).toEqual(new Set(others));
});

test('every page has its heading, keeps the strict policy, fits a phone, and axe finds no fault in it', async () => {
  const errors: string[] = [];
  page.on('console', (message) => void (message.type() === 'error' && errors.push(message.text())));
  await page.setViewportSize({ width: 360, height: 740 });
  for (const address of addresses) {
    await page.goto(address);
    expect(await page.title()).toBe(`${await page.locator('h1').textContent()} | Varve`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), address).toBe(360);
    expect(await violationsOf(page), address).toEqual([]);
  }
  expect(errors).toEqual([]);
});
