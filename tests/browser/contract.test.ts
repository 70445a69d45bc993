// The storages of a real browser fulfil the contract of storages (js/src/testing), as files do.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

test.each(['opfs', 'indexeddb'] as const)('%s keeps the contract of storages', async (kind) => {
  const { page } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(page, '/contract-worker.js');
  const { names, failures } = await worker.evaluate((called) => contract(called), kind);
  console.log(`${names.length} clauses: ${names.join('; ')}`);
  expect(failures).toEqual([]);
  expect(names.length).toBeGreaterThan(kind === 'opfs' ? 20 : 25);
});
