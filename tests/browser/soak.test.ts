// A page in real Chromium in mixed use for a long time, over OPFS and over IndexedDB. These must stay flat:
//
// - heaps of page and worker, and memories of WebAssembly;
// - workers, ports, handles and connections;
// - objects that the engine has open;
// - the time of calls, relative to turns of the page's thread.
//
// `VARVE_SOAK_MINUTES` sets the time for all four storages of the soak together (`npm run test:soak`), `VARVE_SEED` the data.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { growthOf, LAPS_MIN, type Lap, lastOf } from '../support/flat.ts';
import { groupOf, memoryOf } from '../support/processes.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { OPENS, type SoakPlan } from '../support/soak.ts';
import { newProfile, type Profile } from './support/profile.ts';

const MINUTES = numberFrom('VARVE_SOAK_MINUTES', 1);
/** A quarter of the time, and of the openings: 2,000 in ten minutes. */
const MS = (MINUTES * 60_000) / 4;
const OPENINGS = (MINUTES * 200) / 4;
const TIMEOUT = 600_000 + 10 * MS + 5000 * OPENINGS;

const seed = runSeed('browser', 'soak');
let profile: Profile;

beforeAll(async () => {
  profile = await newProfile(['--js-flags=--expose-gc', '--enable-precise-memory-info']);
});

afterAll(() => profile?.close());

async function soakFor(storage: 'opfs' | 'indexeddb', ms: number, openings: number, plan: SoakPlan): Promise<Lap[]> {
  const { page } = await profile.openPage('/soak.html');
  await page.evaluate(([where, how]) => soak.start(where, how), [storage, plan] as const);
  const laps: Lap[] = [];
  const end = performance.now() + ms;
  const browser = await profile.processId();
  while (laps.length < LAPS_MIN || laps.length * OPENS < openings || performance.now() < end) {
    const { counts, times } = await page.evaluate(() => soak.lap());
    const processes = groupOf(browser, '--type=renderer').map(memoryOf);
    const processBytes = 1024 * processes.reduce((sum, kib) => sum + kib, 0);
    laps.push({ counts: { ...counts, processBytes }, times });
  }
  if (plan.leak === undefined) await page.evaluate(() => soak.end());
  await page.close();
  return laps;
}

test.for(['opfs', 'indexeddb'] as const)('a soak in %s stays flat', { timeout: TIMEOUT }, async (storage) => {
  const laps = await soakFor(storage, MS, OPENINGS, { seed });
  console.log(`${storage}: ${laps.length} laps, ${laps.length * OPENS} openings; at the end ${lastOf(laps)}`);
  expect(growthOf(laps)).toEqual([]);
});

test('a soak that leaves stores open does not stay flat', { timeout: 600_000 }, async () => {
  const grown = growthOf(await soakFor('opfs', 0, 0, { seed, leak: 'closing' })).join('; ');
  for (const what of ['workers', 'wasmMemories', 'handles']) expect(grown).toContain(what);
});
