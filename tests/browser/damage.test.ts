// A store with a damaged byte reports VARVE_CORRUPT, at open or at a read, or answers right: never a wrong value. A store that
// a crash left unsealed may instead drop its last group, and then reports that it is torn.
// This test samples bytes in a real browser; crates/varve/tests/store_damage.rs covers every byte.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { runSeed } from '../support/seed.ts';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

const seed = runSeed('browser', 'damage');
let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

async function openDamageWorker() {
  const { page } = await profile.openPage('/blank.html');
  return { page, ...(await openWorker(page, '/damage-worker.js')) };
}

test('a closed store with a damaged byte is corrupt or right', async () => {
  const { worker, page } = await openDamageWorker();
  await worker.evaluate(() => damage.build('closed', 12));
  const found = await worker.evaluate((from) => damage.sweep('closed', 240, from), seed);
  console.log(JSON.stringify(found));
  expect(found).toMatchObject({ state: 'clean', logged: 12, wrong: [] });
  // It dropped only its seal: nothing may be missing.
  expect(found.torn).toBe(0);
  expect(found.corrupt).toBeGreaterThan(60);
  expect(found.right).toBeGreaterThan(10);
  await page.close();
});

test('a store whose browser was killed, and a byte damaged, is corrupt, right, or without its last group', async () => {
  const { worker, page } = await openDamageWorker();
  const logged = page.waitForEvent('console', (message) => message.text() === 'logged 8');
  void worker.evaluate(() => damage.writeForever('killed')).catch(() => undefined);
  await logged;
  await profile.kill();
  const again = await openDamageWorker();
  const found = await again.worker.evaluate((from) => damage.sweep('killed', 160, from), seed);
  console.log(JSON.stringify(found));
  expect(found.wrong).toEqual([]);
  expect(['replayed', 'torn']).toContain(found.state);
  expect(found.logged).toBeGreaterThanOrEqual(8);
  expect(found.corrupt).toBeGreaterThan(40);
});
