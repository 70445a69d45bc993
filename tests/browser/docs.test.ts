// The documentation, as `npm start` serves it.

import { copyFileSync, cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildDocs } from '../../scripts/docs.mjs';
import { DOCS_POLICY, serve } from '../../scripts/server.mjs';
import { root } from '../../scripts/tools.mjs';
import { violationsOf } from './support/axe.ts';
import { newProfile, type Profile } from './support/profile.ts';

const FOLDER = join(root, 'build', 'test-docs');

/** The pages that axe looks at: the first one, and one of each kind. */
const WITH_AXE = new Set(['index.html', 'guide/api.html', 'guide/index.html']);

let profile: Profile;
let site: Awaited<ReturnType<typeof serve>>;
let page: Page;
let pages: string[];

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  await buildDocs(FOLDER);
  cpSync(join(root, 'dist'), join(FOLDER, 'demo', 'varve'), { recursive: true });
  copyFileSync(join(root, 'demo', 'icon.svg'), join(FOLDER, 'demo', 'icon.svg'));
  profile = await newProfile();
  site = await serve({ mounts: [{ path: '/', folder: FOLDER, headers: DOCS_POLICY, gzip: true }] });
  page = await profile.context.newPage();
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' });
  pages = files.filter((name) => name.endsWith('.html') && name !== '404.html');
}, 600_000);

afterAll(async () => {
  await profile?.close();
  await site?.close();
});

test('every link leads to a page and a heading that exist', () => {
  const places = new Set(['/demo/', '/bench/']);
  const links = new Map<string, string>();
  for (const name of pages) {
    const html = readFileSync(join(FOLDER, name), 'utf8');
    const address = `/${name}`.replace(/\/index\.html$/, '/');
    places.add(address);
    for (const [, id] of html.matchAll(/ id="([^"]+)"/g)) places.add(`${address}#${id}`);
    for (const [, href = ''] of html.matchAll(/<a [^>]*?href="([^"]+)"/g)) {
      const { host, pathname, hash } = new URL(href, `http://site${address}`);
      if (host === 'site') links.set(pathname + decodeURIComponent(hash), name);
    }
  }
  expect([...links].filter(([link]) => !places.has(link))).toEqual([]);
});

test('every page of the guide has its heading, keeps the policy, fits a phone, and axe finds no fault', async () => {
  const errors: string[] = [];
  page.on('console', (message) => void (message.type() === 'error' && errors.push(message.text())));
  await page.setViewportSize({ width: 360, height: 740 });
  for (const name of pages.filter((page) => /^(index|guide\/.*)\.html$/.test(page))) {
    await page.goto(`${site.origin}/${name}`);
    const heading = await page.locator('h1').textContent();
    if (name !== 'index.html') expect(await page.title()).toBe(`${heading?.replace(/\u200b/g, '').trim()} | Varve`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), name).toBe(360);
    if (!WITH_AXE.has(name)) continue;
    errors.push(...(await violationsOf(page)).map((violation) => `${name}: ${violation}`));
  }
  expect(errors).toEqual([]);
});

/** The bytes that the page has loaded, and whether some were of the package. */
function loaded(): Promise<{ bytes: number; hasPackage: boolean }> {
  return page.evaluate(() => {
    const parts = ['navigation', 'resource'].flatMap((type) => performance.getEntriesByType(type));
    return {
      bytes: (parts as PerformanceResourceTiming[]).reduce((sum, { transferSize }) => sum + transferSize, 0),
      hasPackage: parts.some(({ name }) => name.includes('/varve/')),
    };
  });
}

test('a first visit is under 300 KB; then the examples run with a store, and can be changed', async () => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(site.origin, { waitUntil: 'networkidle' });
  const first = await loaded();
  expect(first.bytes).toBeGreaterThan(10_000);
  expect(first.bytes).toBeLessThan(300_000);
  expect(first.hasPackage).toBe(false);

  const output = page.locator('.output');
  const run = async (words: string): Promise<void> => {
    await page.locator('.playground button', { hasText: 'Run' }).click();
    await output.getByText(words).waitFor();
  };
  await run('stored in opfs and found again as new');
  expect((await loaded()).hasPackage).toBe(true);
  for (const [tab, words] of [
    ['Ranges', "['layer', 2024] the mud of 2024\nthe last one: ['layer', 2026]"],
    ['Live, in all tabs', '1 guests: ['],
    ['Transactions', 'refused: only 20 left\n[20, 80]'],
  ] as const) {
    await page.getByText(tab, { exact: true }).click();
    await run(words);
  }

  const code = page.locator('.blocks > .active code');
  await code.fill("import { open } from 'varve';\nawait open('');");
  await code.press('Control+Enter');
  await output.getByText('VARVE_INVALID_ARGUMENT: ').waitFor();
  await code.fill('const = 1;');
  await code.press('Control+Enter');
  await output.getByText('SyntaxError: ').waitFor();
});
