// More writes at once than a store in OPFS has memory for, in a real Chromium: all of them are accepted.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FloodPlan } from '../support/flood.ts';
import { newProfile, type Profile } from './support/profile.ts';

const MIB = 2 ** 20;
const PLANS: readonly FloodPlan[] = [
  { loops: undefined, writes: 20_000, bytes: 1024 },
  { loops: 16, writes: 320, bytes: 65_536 },
];

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

test.each([1, 8])('sets that come faster than they are flushed are accepted with %i MiB of memory', async (mib) => {
  const { page, errors } = await profile.openPage();
  const problems = await page.evaluate(
    async ([memory, plans]) => {
      const db = await varve.open(`flood ${memory}`, { storage: 'opfs', memoryBytes: memory });
      for (const plan of plans) await flooded(db, plan);
      const report = await db.check();
      await db.close();
      return report.problems;
    },
    [mib * MIB, PLANS] as const,
  );
  expect(problems).toEqual([]);
  expect(errors).toEqual([]);
  await page.close();
});
