// The benchmark page, used as a person would: choose, run, sort, save, compare, share, and open it again without a network.
// One site and one profile for all tests, which build on each other: a run is made once, with the floors only.

import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { planFrom } from '../../bench/core/options.ts';
import type { Result } from '../../bench/core/report.ts';
import { runPlanInBrowser } from '../../bench/targets/browser/browser-run.ts';

import { serve } from '../../scripts/server.mjs';
import { buildBenchPages, buildOfflineWorker } from '../../scripts/site.mjs';
import { root } from '../../scripts/tools.mjs';
import { violationsNow } from './support/axe.ts';
import { newProfile, type Profile } from './support/profile.ts';

const PAGES = join(root, 'build', 'test-bench');
const CHOICE = '?suites=read-rand-mem&engines=map%2Cmessage&access=worker%2Cpage&calls=500&rounds=2';

let profile: Profile;
let site: { origin: string; close(): Promise<void> };
let page: Page;
let saved: Result;
const errors: string[] = [];

beforeAll(async () => {
  rmSync(PAGES, { recursive: true, force: true });
  await buildBenchPages(PAGES);
  cpSync(join(root, 'dist'), join(PAGES, 'varve'), { recursive: true });
  await buildOfflineWorker(PAGES);
  // As a static host without headers serves it.
  site = await serve({ mounts: [{ path: '/bench/', folder: PAGES }] });
  profile = await newProfile();
  await profile.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: site.origin });
  page = await profile.context.newPage();
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('dialog', (dialog) => void dialog.accept());
  await page.goto(`${site.origin}/bench/${CHOICE}`);
});

afterAll(async () => {
  await profile.close();
  await site.close();
  expect(errors).toEqual([]);
});

const firstCells = (table: string): Promise<string[]> => page.locator(`${table} tbody th`).allTextContents();

/** Saves the shown result as a file, and reads it. */
async function save(button: string): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
  return readFileSync((await download.path()) as string, 'utf8');
}

test('a run of one suite shows its rows, and keeps them', async () => {
  expect(await page.textContent('#plan')).toBe(
    'Quick run: 1 suite, 2 engines, 2 ways in, 6 rounds, with sizes and options of yours.',
  );
  await page.click('#run');
  await page.waitForFunction(() => document.querySelector('#step')?.textContent?.startsWith('Done'));
  expect(await page.textContent('#step')).toBe('Done: 2 rows.');
  expect(await page.isVisible('#problems')).toBe(false);
  expect(await page.textContent('#summary')).toContain('All 2 rows were verified.');
  expect(await firstCells('#rows-table')).toEqual(['read-rand-mem', 'read-rand-mem']);
  expect(await page.getAttribute('#case-charts canvas', 'aria-label')).toContain('Rate of each engine');
  await page.waitForSelector('#run-list li');
  expect(await page.inputValue('#run-list input')).toBe('quick run');
});

test('what is saved as JSON is the result, and CSV has its rows', async () => {
  saved = JSON.parse(await save('#save-json')) as Result;
  expect(saved.rows.map(({ engine, access }) => [engine, access])).toEqual([
    ['map', 'worker'],
    ['message', 'page'],
  ]);
  expect(saved.plan).toMatchObject({ suites: ['read-rand-mem'], rounds: 2, custom: { calls: 500 } });
  const [titles, ...lines] = (await save('#save-csv')).trimEnd().split('\r\n');
  expect(titles).toMatch(/^suite,access,/);
  expect(lines).toHaveLength(2);
  expect(await save('#save-markdown')).toContain('# Varve benchmark');
});

test('a saved file is taken in, its table sorted by a column, and copied as it is sorted', async () => {
  const [row] = saved.rows as [Result['rows'][0]];
  const engines = { 'varve-sync': ['varve', 4], indexeddb: ['peer', 1], idb: ['peer', 8], map: ['floor', 2] } as const;
  const rows = Object.entries(engines).map(([engine, [role, part]]) => {
    const rate = row.opsPerSecond * part;
    const samples = [1, 2].map((i) => ({
      ...{ steps: i * 10, at_ms: i, stepsPerSecond: rate, p99: 9, disk: { files: 1, bytes: i * 1e6 } },
    }));
    // Only the fields of a life that this page draws; a row with no life is shown without it.
    const life = role === 'floor' ? { samples: 'none' } : { planned: 20, samples, livingBytes: 1e6 };
    return { ...row, engine, role, opsPerSecond: rate, rounds: [rate, rate * 1.01, rate * 0.99], life };
  });
  const environment = { ...saved.environment, date: '2026-01-02T03:04:05.000Z' };
  const file = JSON.stringify({ ...saved, environment, rows });
  await page.setInputFiles('#import', { name: 'other.json', mimeType: 'application/json', buffer: Buffer.from(file) });
  // The message appears once the result is stored, which is after it is shown: a message about a copy made meanwhile would come before it.
  await page.waitForFunction(() => document.querySelector('#said')?.textContent === 'other was taken in and is shown.');
  expect(await page.textContent('#results-title')).toBe('other');
  expect(await page.textContent('#summary .behind')).toBe('Slower than the best peer in 1 of 1:');
  expect(await page.textContent('#summary ul')).toContain('read-rand-mem (worker): 0.50x the rate of idb');

  const charts = await page
    .locator('#case-charts figure:not([hidden]) canvas')
    .evaluateAll((all) => all.map((canvas) => canvas.getAttribute('aria-label')));
  expect(charts.map((label) => label?.split('.')[0])).toEqual(
    expect.arrayContaining(['Rate over the steps', 'p99 over the steps', 'Disk over the steps']),
  );
  expect(charts.join()).not.toContain('Memory over the steps');
  expect(charts.at(-1)).toContain('varve-sync: 20.0 of 20.0 steps; slowest window 1.00x the first');

  const header = page.locator('#case-table thead th', { hasText: 'per second' });
  await header.getByRole('button').click();
  expect(await header.getAttribute('aria-sort')).toBe('descending');
  const descending = ['idb (best peer)', 'varve-sync', 'map', 'indexeddb'];
  expect(await firstCells('#case-table')).toEqual(descending);
  await header.getByRole('button').press('Enter');
  expect(await header.getAttribute('aria-sort')).toBe('ascending');
  expect(await firstCells('#case-table')).toEqual(descending.toReversed());
  await page.getByRole('button', { name: 'Copy as TSV: read-rand-mem' }).click();
  await page.waitForFunction(() => document.querySelector('#said')?.textContent === 'The table as TSV copied.');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied.split('\n').map((line) => line.split('\t')[0])).toEqual(['engine', ...descending.toReversed(), '']);
});

test('two runs are compared, and a change within noise is called so', async () => {
  await page.waitForSelector('#run-list li:nth-child(2)');
  await page.click('#compare-form button');
  await page.waitForSelector('#compare:not([hidden])');
  expect(await page.textContent('#compare-summary')).toContain('Of 1 rows that both have');
  expect(await page.locator('#compare-table tbody tr').count()).toBe(1);
  expect(await page.textContent('#compare-table tbody td:last-child')).toMatch(/^(slower|quicker|within noise)$/);
});

test('nothing that axe knows is wrong with the page, light or dark, on a phone too', async () => {
  await page.click('#options summary');
  await page.selectOption('#theme', 'light');
  expect(await violationsNow(page)).toEqual([]);
  await page.selectOption('#theme', 'dark');
  // The other theme has the same elements in other colours.
  expect(await violationsNow(page, ['color-contrast'])).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  // Charts adopt the width of the phone in a turn after the window does: Chart.js watches for the change.
  await page.waitForFunction(() => document.documentElement.scrollWidth === 360);
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('the address follows the choice, a wrong figure is told beside its field, and the address gives the same again', async () => {
  await page.fill('#option-value-bytes', '0');
  expect(await page.textContent('#option-value-bytes-wrong')).toContain('from 4 to');
  expect(await page.getAttribute('#option-value-bytes', 'aria-invalid')).toBe('true');
  await page.fill('#option-value-bytes', '256');
  await page.check('input[name="suites"][value="range-100"]');
  await page.uncheck('input[name="engines"][value="message"]');
  const plan = await page.textContent('#plan');
  const { search } = new URL(page.url());
  expect(Object.fromEntries(new URLSearchParams(search))).toMatchObject({
    suites: 'read-rand-mem,range-100',
    engines: 'map',
    'value-bytes': '256',
    rounds: '2',
  });
  await page.reload();
  expect(await page.textContent('#plan')).toBe(plan);
  expect(await page.inputValue('#option-value-bytes')).toBe('256');
  expect(await page.isChecked('input[name="suites"][value="range-100"]')).toBe(true);
  expect(await page.isChecked('input[name="engines"][value="message"]')).toBe(false);
  expect(new URL(page.url()).search).toBe(search);
});

test('a result travels in an address', async () => {
  await page.click('#run-list li:last-child button');
  await page.waitForFunction(() => document.querySelector('#results-title')?.textContent === 'other');
  await page.click('#share');
  await page.waitForFunction(() => document.querySelector('#said')?.textContent?.includes('copied'));
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const other = await profile.context.newPage();
  await other.goto(link);
  await other.waitForFunction(() => document.querySelector('#results-title')?.textContent === 'A shared result');
  expect(await other.locator('#rows-table tbody tr').count()).toBe(4);
  await other.close();
});

test('the page of millions of pairs shows its phases, and copies them as the command line prints them', async () => {
  const scale = await profile.context.newPage();
  scale.on('pageerror', (error) => errors.push(String(error)));
  await scale.goto(`${site.origin}/bench/scale.html?pairs=5000`);
  await scale.waitForFunction(() =>
    /^Done|error|\d expected/i.test(document.querySelector('#step')?.textContent ?? ''),
  );
  expect(await scale.textContent('#step')).toBe('Done.');
  const phases = scale.locator('#result tbody th');
  expect(await phases.allTextContents()).toContain('read after reopen');
  await scale.click('#result thead button:text("operations")');
  expect(await scale.getAttribute('#result [aria-sort]', 'aria-sort')).toBe('descending');
  expect(await phases.first().textContent()).toBe('get, quiet');
  await scale.click('#result .copies button:text("Markdown")');
  await scale.waitForFunction(() => document.querySelector('#said')?.textContent !== '');
  expect(await scale.evaluate(() => navigator.clipboard.readText())).toContain('| phase ');
  expect(await violationsNow(scale)).toEqual([]);
  await scale.close();
});

test('the page of millions of pairs can be cancelled, and shows what was measured until then', async () => {
  const scale = await profile.context.newPage();
  scale.on('pageerror', (error) => errors.push(String(error)));
  await scale.goto(`${site.origin}/bench/scale.html?pairs=100000`);
  await scale.waitForSelector('#result tbody tr');
  const isStored = async (): Promise<boolean> => {
    const varve = await (await navigator.storage.getDirectory()).getDirectoryHandle('varve');
    for await (const name of varve.keys()) if (name.includes('bench-scale')) return true;
    return false;
  };
  expect(await scale.evaluate(isStored)).toBe(true);
  await scale.click('#cancel');
  expect(await scale.textContent('#step')).toBe('The run was cancelled.');
  expect(await scale.isVisible('#cancel')).toBe(false);
  const phases = await scale.locator('#result tbody th').allTextContents();
  expect(phases).toContain('write');
  expect(phases).not.toContain('transactions: read');
  await vi.waitFor(async () => expect(await scale.evaluate(isStored)).toBe(false), { timeout: 20_000, interval: 100 });
  expect(await violationsNow(scale)).toEqual([]);
  await scale.close();
});

test('a signal ends a run of the command line with what was measured until then', async () => {
  const suites = ['read-seq-mem', 'read-rand-mem', 'read-miss', 'scan'];
  const params = `?suites=${suites}&engines=map,varve-sync&access=worker&calls=20000&rounds=5`;
  const { plan } = planFrom(new URLSearchParams(params));
  const printed = vi.spyOn(console, 'log').mockReturnValue();
  vi.spyOn(console, 'error').mockReturnValue();
  const before = process.listeners('SIGTERM');
  const running = runPlanInBrowser(plan, { headed: false, profile: undefined, site: PAGES });
  const isSecondRow = expect.stringMatching(/^ {2}read-seq-mem \(worker\) map/);
  await vi.waitFor(() => expect(printed).toHaveBeenCalledWith(isSecondRow), { timeout: 60_000 });
  // Vitest has its own listeners, which a real signal would reach too.
  for (const listener of process.listeners('SIGTERM')) if (!before.includes(listener)) listener('SIGTERM');
  const { result, wasCancelled } = await running;
  vi.restoreAllMocks();
  expect(wasCancelled).toBe(true);
  expect(result.problems).toEqual(['The run was cancelled.']);
  expect(result.rows.length).toBeGreaterThanOrEqual(2);
  expect(new Set(result.rows.map(({ suite }) => suite)).size).toBeLessThan(suites.length);
  expect(process.listeners('SIGTERM')).toEqual(before);
});

test('the page works without a network after the first visit, isolated by its own service worker', async () => {
  await page.waitForSelector('#offline[data-state="ready"]');
  await site.close();
  await page.goto(`${site.origin}/bench/${CHOICE}`);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  await page.waitForSelector('#run-list li:nth-child(2)');
  await page.click('#run');
  await page.waitForFunction(() => document.querySelector('#step')?.textContent === 'Done: 2 rows.');
  expect(await page.isVisible('#problems')).toBe(false);
});
