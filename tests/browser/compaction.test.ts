// Flushes and compactions in the compactor worker, beside the engine.
//
// - Reads return the same values.
// - A scan keeps the read point of its call.
// - Level 0 stays short.
// - Overwriting does not fill the disk.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { runSeed } from '../support/seed.ts';
import type { Churned } from './support/churn.ts';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

/** Nothing is added to level 0 once it has so many tables. */
const LEVEL0_STALL = 20;

const seed = runSeed('browser', 'compaction');
let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

/** How many times as much a store may take at the end: of its size after the first part, and of its live data. */
interface Bounds {
  readonly growth: number;
  readonly disk: number;
}

/** A page waits while level 0 is long. */
const PAGE: Bounds = { growth: 1.5, disk: 9 };
/** A worker that writes without a pause never waits: level 0 is as long as allowed, and a merge and its waiting tables come on top. */
const WORKER: Bounds = { growth: 2.5, disk: 14 };

function judge(found: Churned, { growth, disk }: Bounds): void {
  const { stats, merged } = found;
  console.log(JSON.stringify(found));
  expect(found.problems).toEqual([]);
  expect(found.state).toBe('clean');
  expect(stats.flush.count).toBeGreaterThan(20);
  expect(stats.compaction.count).toBeGreaterThan(2);
  // One run at the bottom, and nothing above it.
  expect(merged.levels.map(({ tables }) => tables > 0)).toEqual(merged.levels.map((_, i, all) => i === all.length - 1));
  expect(stats.levels.at(-1)?.entries).toBeGreaterThan(0);
  expect(found.level0Max).toBeLessThanOrEqual(LEVEL0_STALL);
  expect(merged.levels[0]?.tables).toBe(0);
  expect(merged.memtable.entries + merged.memtable.frozen).toBe(0);
  // Each part overwrites everything twice. The size of a store depends on when its work ran, but not on how much work there
  // was: beside the live data there are inputs that wait for their edit, tables that open scans pin, logs and spare files.
  const [first = 0, , last = 0] = found.diskBytes;
  expect(last).toBeLessThan(first * growth);
  expect(last).toBeLessThan(found.liveBytes * disk);
}

test('a page that overwrites its keys many times reads what it wrote, while and after tables are merged', async () => {
  const { page, errors } = await profile.openPage('/churn.html');
  judge(await page.evaluate((number) => churn('page', number), seed), PAGE);
  expect(errors).toEqual([]);
});

test('a worker with the synchronous API reads what it wrote, while and after tables are merged', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(page, '/churn-worker.js');
  judge(await worker.evaluate((number) => churn('worker', number), seed + 1), WORKER);
  expect(errors).toEqual([]);
});
