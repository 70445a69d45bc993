// The benchmark page, used as a person would: choose, run, save, and open it again.
// One site and one profile for all tests, which build on each other: a run is made once, beside IndexedDB and a floor.

import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { planFrom } from '../../bench/core/options.ts';
import '../../bench/peers/all.ts';
import '../../bench/suites/browser.ts';
import type { Result } from '../../bench/core/result.ts';
import { runPlanInBrowser } from '../../bench/targets/browser/browser-run.ts';
import { ISOLATED, serve } from '../../scripts/server.mjs';
import { buildBenchPages } from '../../scripts/site.mjs';
import { root } from '../../scripts/tools.mjs';
import { violationsNow } from './support/axe.ts';
import { newProfile, type Profile } from './support/profile.ts';

const PAGES = join(root, 'build', 'test-bench');
const CHOICE = '?suites=read-rand-mem&engines=varve-sync%2Cindexeddb%2Cmap&access=worker&calls=500&rounds=2';

let profile: Profile;
let site: { origin: string; close(): Promise<void> };
let page: Page;
const errors: string[] = [];

beforeAll(async () => {
  rmSync(PAGES, { recursive: true, force: true });
  await buildBenchPages(PAGES);
  cpSync(join(root, 'dist'), join(PAGES, 'varve'), { recursive: true });
  site = await serve({ mounts: [{ path: '/bench/', folder: PAGES, headers: ISOLATED }] });
  profile = await newProfile();
  page = await profile.context.newPage();
  page.on('pageerror', (error) => errors.push(String(error)));
  await page.goto(`${site.origin}/bench/${CHOICE}`);
});

afterAll(async () => {
  await profile.close();
  await site.close();
  expect(errors).toEqual([]);
});

/** Opens the table whose title begins so, and reads the first cells of its lines. */
async function firstCells(title: string): Promise<string[]> {
  const table = page.locator('#tables details', { has: page.locator('summary', { hasText: title }) });
  return table.locator('tbody th').allTextContents();
}

/** Saves the shown result as a file, and reads it. */
async function save(button: string): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
  return readFileSync((await download.path()) as string, 'utf8');
}

test('published figures are there before anything has run: everyday tasks in words, then where Varve is slower', async () => {
  const chart = page.locator('#published li:has(> b)');
  expect(await chart.locator('> b').allTextContents()).toContain('Open a store and read one value');
  expect(await chart.locator('li span').allTextContents()).toContainEqual(
    expect.stringMatching(/ as fast as IndexedDB$/),
  );
  expect(await page.textContent('#slower')).toMatch(/^Varve is slower in \d+ of \d+ comparisons/);
  expect(await page.locator('#slowest tbody tr').count()).toBeGreaterThan(0);
});

test('a run of one suite shows its rows, in words and tables', async () => {
  expect(await page.textContent('#plan')).toBe(
    'A quick run, with your sizes and options. Suites: 1. Engines: 3. Steps: 9.',
  );
  await page.click('#run');
  await page.waitForFunction(() => document.querySelector('#step')?.textContent?.startsWith('Done'));
  expect(await page.textContent('#step')).toBe('Done: 3 rows.');
  expect(await page.isVisible('#problems')).toBe(false);
  expect(await page.textContent('#headline')).toBe(
    'Varve is slower in 0 of 1 comparisons with a peer. All 3 rows were verified.',
  );
  expect(await page.textContent('#charts')).toMatch(/In a worker: read a value.* IndexedDB/);
  expect(await firstCells('Beside the best peer')).toEqual(['read-rand-mem (in the worker)']);
  expect(await firstCells('read-rand-mem')).toEqual(['varve-sync', 'indexeddb', 'map']);
});

test('the saved JSON is the result', async () => {
  const saved = JSON.parse(await save('#save-json')) as Result;
  expect(saved.rows.map(({ engine }) => engine)).toEqual(['varve-sync', 'indexeddb', 'map']);
  expect(saved.plan).toMatchObject({ suites: ['read-rand-mem'], rounds: 2, custom: { calls: 500 } });
});

test('axe finds no fault in the page, light or dark, on a phone too', async () => {
  await page.click('#options summary');
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await violationsNow(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  // The other theme has the same elements in other colours.
  expect(await violationsNow(page, ['color-contrast'])).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await page.waitForFunction(() => document.documentElement.scrollWidth === 360);
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('the address follows the choice, no run begins with a wrong figure, and the address restores the same choice', async () => {
  await page.fill('#option-value-bytes', '0');
  await page.click('#run');
  expect(await page.isVisible('#run')).toBe(true);
  expect(await page.evaluate(() => document.querySelector(':focus')?.id)).toBe('option-value-bytes');
  await page.fill('#option-value-bytes', '256');
  await page.check('input[name="suites"][value="range-100"]');
  await page.uncheck('input[name="engines"][value="indexeddb"]');
  const plan = await page.textContent('#plan');
  const { search } = new URL(page.url());
  expect(Object.fromEntries(new URLSearchParams(search))).toMatchObject({
    suites: 'read-rand-mem,range-100',
    engines: 'varve-sync,map',
    'value-bytes': '256',
    rounds: '2',
  });
  await page.reload();
  expect(await page.textContent('#plan')).toBe(plan);
  expect(await page.inputValue('#option-value-bytes')).toBe('256');
  expect(await page.isChecked('input[name="suites"][value="range-100"]')).toBe(true);
  expect(await page.isChecked('input[name="engines"][value="indexeddb"]')).toBe(false);
  expect(new URL(page.url()).search).toBe(search);
});

test('millions of pairs, here a few thousand, are a suite like any other', async () => {
  const { plan } = planFrom(new URLSearchParams('suites=scale&engines=varve-sync&access=worker&entries=5000'));
  vi.spyOn(console, 'log').mockReturnValue();
  const { saved: run } = await runPlanInBrowser(plan, { profile: undefined, site: PAGES });
  vi.restoreAllMocks();
  expect(run.problems).toEqual([]);
  expect(run.rows.map(({ phase }) => phase)).toEqual(
    expect.arrayContaining(['write', 'read after reopen', 'iterate', 'delete']),
  );
});

test('reads that the tab answers are right beside a second tab that writes all the time', async () => {
  const params = 'suites=page-cached&engines=varve&access=page&calls=300&rounds=1';
  vi.spyOn(console, 'log').mockReturnValue();
  const { saved: run } = await runPlanInBrowser(planFrom(new URLSearchParams(params)).plan, {
    profile: undefined,
    site: PAGES,
  });
  vi.restoreAllMocks();
  expect(run.problems).toEqual([]);
  const beside = ['', ', a second tab is idle', ', a second tab writes'].flatMap((tab) => [
    `get${tab}`,
    `range of 100${tab}`,
  ]);
  expect(run.rows.map(({ phase }) => phase).toSorted()).toEqual(['90% reads', ...beside].toSorted());
});

test('a signal ends a run of the command line with what was measured until then', async () => {
  const suites = ['read-seq-mem', 'read-rand-mem', 'read-miss', 'scan'];
  const params = `?suites=${suites}&engines=map,varve-sync&access=worker&calls=20000&rounds=5`;
  const { plan } = planFrom(new URLSearchParams(params));
  const printed = vi.spyOn(console, 'log').mockReturnValue();
  vi.spyOn(console, 'error').mockReturnValue();
  const before = process.listeners('SIGTERM');
  const running = runPlanInBrowser(plan, { profile: undefined, site: PAGES });
  const isSecondRow = expect.stringMatching(/^ {2}read-seq-mem \(in the worker\) map/);
  await vi.waitFor(() => expect(printed).toHaveBeenCalledWith(isSecondRow), { timeout: 60_000 });
  // Vitest has its own listeners, which a real signal would reach too.
  for (const listener of process.listeners('SIGTERM')) if (!before.includes(listener)) listener('SIGTERM');
  const { saved: result, wasCancelled } = await running;
  vi.restoreAllMocks();
  expect(wasCancelled).toBe(true);
  expect(result.problems).toEqual(['The run was cancelled.']);
  expect(result.rows.length).toBeGreaterThanOrEqual(2);
  expect(new Set(result.rows.map(({ suite }) => suite)).size).toBeLessThan(suites.length);
  expect(process.listeners('SIGTERM')).toEqual(before);
});
