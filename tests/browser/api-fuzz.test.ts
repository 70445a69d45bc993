// Histories of the whole API at random, compared with models (tests/support/api), in a real browser: over OPFS and over IndexedDB.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { fuzz } from '../support/api/settings.ts';
import { newProfile, type Profile } from './support/profile.ts';

const FOR_AS_LONG_AS_ASKED = { timeout: 2 ** 31 - 1 };

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

test.each(['opfs', 'indexeddb'] as const)(
  'all answers are those of a model: %s',
  FOR_AS_LONG_AS_ASKED,
  async (storage) => {
    const { page, errors } = await profile.openPage('/api-fuzz.html');
    let count = 0;
    const place = { name: `chromium-${storage}`, hundredths: 10, isSync: false, hasTabs: true, steps: 25 };
    await fuzz(place, async (history) => {
      const name = `history ${count++}`;
      const fault = await page.evaluate(([storage, name, history]) => fuzzed(storage, name, history), [
        storage,
        name,
        history,
      ] as const);
      if (fault !== undefined) throw new Error(fault);
    });
    expect(errors).toEqual([]);
    await page.close();
  },
);
