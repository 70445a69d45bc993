// `varve/abstract-level` in a page, over OPFS, under the suite of abstract-level.

import { expect, test } from 'vitest';
import type {} from './fixtures/level.ts';
import { newProfile } from './support/profile.ts';

test('passes every test of the suite', async () => {
  const profile = await newProfile();
  try {
    const { page, errors } = await profile.openPage('/level.html');
    const { storage, passed, failed } = await page.evaluate(() => globalThis.level.runSuite());
    expect([storage, failed, errors]).toEqual(['opfs', [], []]);
    expect(passed).toBeGreaterThan(1400);
  } finally {
    await profile.close();
  }
});
