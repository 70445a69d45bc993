/** The lock of a store: a caller that released it, and waited for that, may request it again at once, in every browser. */

import { afterEach, expect, test, vi } from 'vitest';
import { acquireLock } from '../../js/src/storage/lock.ts';
import { opfsStorage } from '../../js/src/storage/opfs-storage.ts';
import { deleteStore, listStores } from '../../js/src/synchronous.ts';
import { FakeLocks, stubOpfs } from './support/fake-opfs.ts';

/** Locks that are free only shortly after their release, as in Firefox, where another process keeps them. */
class LateLocks extends FakeLocks {
  override request(...[name, options, callback]: Parameters<FakeLocks['request']>): Promise<unknown> {
    return super.request(name, options, async (lock) => {
      await callback(lock);
      await new Promise((resolve) => setTimeout(resolve));
    });
  }
}

afterEach(() => vi.unstubAllGlobals());

test('a lock is granted without waiting after its release', async () => {
  vi.stubGlobal('navigator', { locks: new LateLocks() });
  for (const lockTimeout of [0, 1000, 0]) {
    const lock = await acquireLock('notes', { lockTimeout });
    await expect(acquireLock('notes', { lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    await lock.release();
  }
});

// The contract of storages found this in Firefox: a store that had just been closed was VARVE_LOCKED to a caller that did not wait.
test('a store that is closed, or deleted, opens at once without waiting', async () => {
  stubOpfs(undefined, new LateLocks());
  for (let i = 0; i < 3; i++) {
    const device = await opfsStorage.open('notes', { lockTimeout: 0 });
    await device.closeAll();
  }
  expect(await opfsStorage.delete('notes', { lockTimeout: 0 })).toBe(true);
  await (await opfsStorage.open('notes', { lockTimeout: 0 })).closeAll();
});

test('a signal ends the wait for a store that is deleted, and the listing of stores', async () => {
  stubOpfs();
  const device = await opfsStorage.open('notes', { lockTimeout: 0 });
  const reason = new Error('enough');
  const aborting = new AbortController();
  const deleted = deleteStore('notes', { lockTimeout: 60_000, signal: aborting.signal });
  aborting.abort(reason);
  await expect(deleted).rejects.toBe(reason);
  await device.closeAll();
  const { signal } = aborting;
  await expect(deleteStore('notes', { signal })).rejects.toBe(reason);
  await expect(listStores({ signal })).rejects.toBe(reason);
  expect(await listStores()).toEqual(['notes']);
  expect(await deleteStore('notes')).toBe(true);
});
