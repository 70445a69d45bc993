// The origin private file system of a real browser keeps the contract of storages (js/src/testing), as files do.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

test('OPFS keeps the contract of storages', async () => {
  const { page } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(page, '/contract-worker.js');
  const { names, failures } = await worker.evaluate(() => contract());
  console.log(`${names.length} clauses: ${names.join('; ')}`);
  expect(failures).toEqual([]);
  expect(names.length).toBeGreaterThan(20);
});
