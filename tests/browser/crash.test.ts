// Acknowledged writes survive crashes. The page is reloaded, its worker terminated, its tab closed, or the whole browser killed.
// Afterwards the store has the history up to the end of some group. The last acknowledged group is in it.
//
// Two stores are written at once, one through `varve` and one through `varve/synchronous`. Each round continues from what the round
// before left. `VARVE_KILL_ROUNDS` sets the number of rounds, `VARVE_SEED` their choices.

import type { Page, Worker } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { History, type Plan } from '../support/history.ts';
import { consoleOf, Progress } from '../support/progress.ts';
import { randomFrom, shuffled } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

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
type Plans = Readonly<Record<'page' | 'worker', Plan>>;

const seed = runSeed('browser', 'crash');
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
  progress = new Progress(consoleOf(page));
}

/** Opens both stores and reads them. */
async function reopen() {
  const [inPage, inWorker] = await Promise.all([
    page.evaluate(() => writer.open('page')),
    worker.evaluate(() => writer.open('worker')),
  ]);
  return { page: inPage, worker: inWorker };
}

/** Ends every writer, and makes a new page and worker ready. */
async function end(ending: Ending): Promise<void> {
  switch (ending) {
    case 'the page was reloaded':
      await page.reload({ waitUntil: 'load' });
      return openSyncWorker();
    case 'the worker was terminated':
      await Promise.all([page.evaluate(() => writer.terminate('page')), terminate()]);
      // The store of a page continues with another worker: see sharing.test.ts.
      await page.reload({ waitUntil: 'load' });
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
  'round $round: writes acknowledged before $ending are there, and the store has a prefix of history',
  async ({ round, ending }) => {
    const plans = {
      page: { seed, round, sequence: histories.page.sequence },
      worker: { seed: seed + 1, round, sequence: histories.worker.sequence },
    };
    const current = progress;
    const sets = SETS + random(SETS_MORE);
    // Half of the time it ends in the middle of writing; else after everything is written, and then nothing may be missing.
    const written = random(2) === 0 ? await writeAll(plans, sets) : await writeOn(plans, sets);
    await end(ending);
    const acknowledged = written ?? { page: current.groups('page'), worker: current.groups('worker') };
    const found = await reopen();
    for (const name of ['page', 'worker'] as const) {
      expect(['replayed', 'torn', 'clean']).toContain(found[name].state);
      const groups = histories[name].survive(plans[name], acknowledged[name], found[name]);
      const { state } = found[name];
      console.log(`round ${round}, ${name}: ${groups} groups, ${acknowledged[name]} acknowledged, ${state}`);
      expect(histories[name].size).toBeGreaterThan(1000);
    }
    if (random(2) === 0) await closeAndReopen();
  },
);

test('a store without a log that is killed has a prefix of its history: the part that was flushed to tables', async () => {
  const names = ['page-without-log', 'worker-without-log'] as const;
  const open = async () => [
    await page.evaluate((name) => writer.open(name, { durability: 'memory' }), names[0]),
    await worker.evaluate((name) => writer.open(name, { durability: 'memory' }), names[1]),
  ];
  await open();
  const plans = [seed + 2, seed + 3].map((number) => ({ seed: number, round: 0, sequence: 0 }));
  await page.evaluate(([name, plan]) => writer.start(name, plan), [names[0], plans[0] as Plan] as const);
  await worker.evaluate(([name, plan]) => writer.start(name, plan), [names[1], plans[1] as Plan] as const);
  await Promise.all(names.map((name) => progress.reached(name, SETS)));
  await end('the browser was killed');
  (await open()).forEach((found, i) => {
    const history = new History();
    expect(history.survive(plans[i] as Plan, 0, found)).toBeGreaterThan(0);
    expect(history.size).toBeGreaterThan(1000);
  });
});

/** Writes so many sets, and returns how many groups are acknowledged. */
async function writeAll(plans: Plans, sets: number): Promise<{ page: number; worker: number }> {
  const [inPage, inWorker] = await Promise.all([
    page.evaluate(([plan, count]) => writer.write('page', plan, count), [plans.page, sets] as const),
    worker.evaluate(([plan, count]) => writer.write('worker', plan, count), [plans.worker, sets] as const),
  ]);
  return { page: inPage, worker: inWorker };
}

/** Starts to write, and resolves when so many sets are acknowledged; the writing continues. */
async function writeOn(plans: Plans, sets: number): Promise<undefined> {
  await page.evaluate((plan) => writer.start('page', plan), plans.page);
  await worker.evaluate((plan) => writer.start('worker', plan), plans.worker);
  await Promise.all([progress.reached('page', sets), progress.reached('worker', sets)]);
}

/** A proper close changes nothing and leaves nothing to replay. */
async function closeAndReopen(): Promise<void> {
  await Promise.all([page.evaluate(() => writer.close('page')), worker.evaluate(() => writer.close('worker'))]);
  const found = await reopen();
  for (const name of ['page', 'worker'] as const) {
    expect(found[name].state).toBe('clean');
    histories[name].expect(found[name]);
  }
}
