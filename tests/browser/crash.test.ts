// What was acknowledged survives: the page reloaded, its worker terminated, its tab closed, the whole browser killed.
// What is found afterwards is the history up to some group, whole, and no earlier than the last acknowledged one.
//
// Two stores are written at once, one through `varve` and one through `varve/sync`, over and over: what a round leaves
// is what the next one goes on from. `VARVE_KILL_ROUNDS` sets how many, `VARVE_SEED` which.

import type { Page, Worker } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { History } from './support/history.ts';
import { newProfile, openWorker, type Profile } from './support/profile.ts';
import { Progress } from './support/progress.ts';
import { randomFrom, shuffled } from './support/random.ts';
import { numberFrom, runSeed } from './support/seed.ts';

const SETS = 20_000;
const SETS_MORE = 1000;
const ROUNDS = numberFrom('VARVE_KILL_ROUNDS', 4);
const ENDINGS = [
  'the page was reloaded',
  'the worker was terminated',
  'the tab was closed',
  'the browser was killed',
] as const;
type Ending = (typeof ENDINGS)[number];

const seed = runSeed('crash');
const random = randomFrom(seed);
const histories = { page: new History(), worker: new History() };
let profile: Profile;
let page: Page;
let worker: Worker;
let terminate: () => Promise<void>;
let progress: Progress;

beforeAll(async () => {
  profile = await newProfile();
  await openTab();
  await reopen();
});

afterAll(() => profile?.close());

async function openTab(): Promise<void> {
  ({ page } = await profile.openPage('/crash.html'));
  await openSyncWorker();
}

async function openSyncWorker(): Promise<void> {
  ({ worker, terminate } = await openWorker(page, '/crash-worker.js'));
  progress = new Progress(page);
}

/** Opens both stores and reads them. */
async function reopen() {
  const [inPage, inWorker] = await Promise.all([
    page.evaluate(() => writer.open('page')),
    worker.evaluate(() => writer.open('worker')),
  ]);
  return { page: inPage, worker: inWorker };
}

/** Ends whatever writes, and makes a new page and worker ready. */
async function end(ending: Ending): Promise<void> {
  switch (ending) {
    case 'the page was reloaded':
      await page.reload({ waitUntil: 'load' });
      return openSyncWorker();
    case 'the worker was terminated':
      await Promise.all([page.evaluate(() => writer.terminate('page')), terminate()]);
      return openSyncWorker();
    case 'the tab was closed':
      await page.close();
      return openTab();
    case 'the browser was killed':
      await profile.kill();
      return openTab();
  }
}

const rounds = Array.from({ length: ROUNDS }, (_, round) => round);
const endings = rounds.flatMap((round) => (round % ENDINGS.length === 0 ? shuffled(ENDINGS, random) : []));

test.for(rounds.map((round) => ({ round, ending: endings[round] as Ending })))(
  'round $round: what was acknowledged before $ending is there, and what is there is a prefix of history',
  async ({ round, ending }) => {
    const plans = {
      page: { seed, round, sequence: histories.page.sequence },
      worker: { seed: seed + 1, round, sequence: histories.worker.sequence },
    };
    await Promise.all([
      page.evaluate((plan) => writer.start('page', plan), plans.page),
      worker.evaluate((plan) => writer.start('worker', plan), plans.worker),
    ]);
    const told = progress;
    const sets = SETS + random(SETS_MORE);
    await Promise.all([told.reached('page', sets), told.reached('worker', sets)]);
    await end(ending);
    const found = await reopen();
    for (const name of ['page', 'worker'] as const) {
      expect(['replayed', 'torn', 'clean']).toContain(found[name].state);
      const groups = histories[name].survive(plans[name], told.groups(name), found[name]);
      console.log(`round ${round}, ${name}: ${groups} groups, ${told.groups(name)} acknowledged, ${found[name].state}`);
      expect(histories[name].size).toBeGreaterThan(1000);
    }
    if (random(2) === 0) await closeAndReopen();
  },
);

/** A proper close changes nothing and leaves nothing to replay. */
async function closeAndReopen(): Promise<void> {
  await Promise.all([page.evaluate(() => writer.close('page')), worker.evaluate(() => writer.close('worker'))]);
  const found = await reopen();
  for (const name of ['page', 'worker'] as const) {
    expect(found[name].state).toBe('clean');
    histories[name].expect(found[name]);
  }
}
