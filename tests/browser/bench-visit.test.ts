// The visits of the benchmark's notes app: its rows over Varve, and an app that loses its notes, which is found out.

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Gathered } from '../../bench/core/result.ts';
import { type Site, type StoreName, startSites } from '../../bench/targets/visit/site.ts';
import { Visits } from '../../bench/targets/visit/visits.ts';
import { root } from '../../scripts/tools.mjs';
import { newProfile, type Profile } from './support/profile.ts';

let folder: string;
let site: Site;
let profile: Profile;

beforeAll(async () => {
  folder = mkdtempSync(join(root, 'build', 'test-visit-'));
  site = await startSites(['varve', 'memory'], folder);
  profile = await newProfile();
});

afterAll(async () => {
  await profile.close();
  await site.close();
  rmSync(folder, { recursive: true });
});

/** A browser's page, ready for visits of these stores. */
async function visitsOf(stores: readonly StoreName[]) {
  const page = await profile.context.newPage();
  const devtools = await profile.context.newCDPSession(page);
  return { page, visits: new Visits(page, devtools, site, stores) };
}

function gathered(visits: Visits): Gathered {
  const found = new Gathered();
  visits.conclude((event) => found.take(event));
  return found;
}

test('first visits and a day of use have their rows, each verified', async () => {
  const { visits } = await visitsOf(['varve', 'memory']);
  await visits.first(0);
  await visits.use(0);
  const { rows, problems } = gathered(visits);
  expect(problems).toEqual([]);
  expect(rows.every(({ verified }) => verified)).toBe(true);
  const of = (name: string) => rows.filter(({ engine }) => engine === name);
  expect(of('varve').map(({ suite, ops }) => [suite, ops])).toEqual([
    ...['open-first-visit', 'open-first-visit', 'open-first-visit'].map((suite) => [suite, 1]),
    ...[1, 20, 20].map((ops) => ['notes-app', ops]),
  ]);
  // Over 3G each file takes a round trip, and the engine's bytes take more.
  const [, , slow] = of('varve');
  expect(slow?.phase).toContain('3G');
  expect(slow?.p50).toBeGreaterThan(4 * 300_000);
  expect(slow?.note).toMatch(/^\d+ requests, [\d.]+ KiB after gzip$/);
});

test('an app that loses its notes is found out', async () => {
  const { page, visits } = await visitsOf(['memory']);
  const body = 'globalThis.notes = { find: async () => [] }; globalThis.firstShown = Promise.resolve(1);';
  await page.route('**/memory/app.js', (route) => route.fulfill({ contentType: 'text/javascript', body }));
  await visits.first(0);
  const { rows, problems } = gathered(visits);
  expect(rows.map(({ verified }) => verified)).toEqual([false, false, false]);
  expect(problems[0]).toContain('0 notes are there, 1 were added');
});
