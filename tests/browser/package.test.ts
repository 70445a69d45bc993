// The package as it ships, loaded by a plain page: it finds workers and wasm beside it, and the strict policy is in force.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile.close());

test('a page opens a store on OPFS, writes, reads and reopens it, without a complaint of the policy', async () => {
  const { page, errors } = await profile.openPage();
  const seen = await page.evaluate(async () => {
    const db = await varve.open('package');
    await db.set(['note', 42], { title: 'Silt' }, { durability: 'strict' });
    const kind = db.storage.kind;
    await db.close();
    const again = await varve.open('package');
    const value = await again.get(['note', 42]);
    await again.close();
    return { kind, value };
  });
  expect(seen).toEqual({ kind: 'opfs', value: { title: 'Silt' } });
  expect(errors).toEqual([]);
});

test('a worker opens the store that a page wrote, synchronously', async () => {
  const { page, errors } = await profile.openPage();
  await page.evaluate(async () => {
    const db = await varve.open('shared');
    await db.set('from', 'page');
    await db.close();
  });
  const { worker } = await openWorker(page);
  const value = await worker.evaluate(async () => {
    const db = await varveSync.open('shared');
    const read = db.get('from');
    await db.close();
    return read;
  });
  expect(value).toBe('page');
  expect(errors).toEqual([]);
});
