// Acknowledged writes over IndexedDB survive crashes. The page is reloaded, the engine's worker terminated, the tab closed, or the browser
// killed. One store is written again and again. Each round continues from what the round before left. `VARVE_KILL_ROUNDS` sets the
// number of rounds, `VARVE_SEED` their choices.
//
// In one or two of a hundred rounds the kill tears the log in which Chromium keeps IndexedDB. Two starts later Chromium finds the log
// corrupt and deletes it (tests/engines/torn-logs.test.ts). The store must then report that it was lost, and begin anew.

import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { History } from '../support/history.ts';
import { isTorn, logsOf } from '../support/leveldb.ts';
import { consoleOf, Progress } from '../support/progress.ts';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { newProfile, type Profile } from './support/profile.ts';

const NAME = 'indexeddb';
const SETS = 4000;
const SETS_MORE = 4000;
const ROUNDS = numberFrom('VARVE_KILL_ROUNDS', 4);
/** Every other time the whole browser is killed: only the storage survives that. */
const ENDINGS = ['the browser was killed', 'the worker was terminated', 'the browser was killed', 'the tab was closed'];

const seed = runSeed('browser', 'crash-indexeddb');
const random = randomFrom(seed);
let history = new History();
/** Whether a kill tore the browser's own files. */
let wasTorn = false;
let profile: Profile;
let page: Page;

beforeAll(async () => {
  profile = await newProfile();
  await openTab();
  await reopen();
});

afterAll(() => profile?.close());

async function openTab(): Promise<void> {
  ({ page } = await profile.openPage('/crash.html'));
}

function reopen() {
  return page.evaluate((name) => writer.open(name, { storage: 'indexeddb' }), NAME);
}

async function end(ending: string): Promise<void> {
  if (ending === 'the worker was terminated') {
    await page.evaluate((name) => writer.terminate(name), NAME);
    // The store of a page continues with another worker: see sharing.test.ts.
    await page.reload({ waitUntil: 'load' });
    return;
  }
  if (ending === 'the browser was killed') {
    await profile.kill((folder) => {
      wasTorn ||= logsOf(folder, 'indexeddb').some(isTorn);
    });
  } else await page.close();
  return openTab();
}

const rounds = Array.from({ length: ROUNDS }, (_, round) => ({ round, ending: ENDINGS[round % ENDINGS.length] ?? '' }));

test.for(rounds)(
  'round $round: writes acknowledged before $ending are there, and the store has a prefix of history',
  async ({ round, ending }) => {
    const plan = { seed, round, sequence: history.sequence };
    // To the test, a page that was loaded again is the same page: reports of its last round do not count for this one.
    const progress = new Progress(consoleOf(page));
    const sets = SETS + random(SETS_MORE);
    let acknowledged: number | undefined;
    // A quarter of the time it ends after everything is written, and then nothing may be missing; else in the middle of writing.
    if (random(4) === 0) {
      const whole = [NAME, plan, sets] as const;
      acknowledged = await page.evaluate(([name, all, count]) => writer.write(name, all, count), whole);
    } else {
      await page.evaluate(([name, all]) => writer.start(name, all), [NAME, plan] as const);
      await progress.reached(NAME, sets);
    }
    await end(ending);
    const found = await reopen();
    if (wasTorn && found.state === 'lost') {
      console.log(`round ${round}: lost by the browser`);
      history = new History();
      history.expect(found);
      return;
    }
    expect(['replayed', 'torn', 'clean']).toContain(found.state);
    const groups = history.survive(plan, acknowledged ?? progress.groups(NAME), found);
    console.log(
      `round ${round}: ${groups} groups, ${acknowledged ?? progress.groups(NAME)} acknowledged, ${found.state}`,
    );
    expect(history.size).toBeGreaterThan(1000);
  },
);

test('a proper close changes nothing and leaves nothing to replay', async () => {
  await page.evaluate((name) => writer.close(name), NAME);
  const found = await reopen();
  expect(found.state).toBe('clean');
  history.expect(found);
});
