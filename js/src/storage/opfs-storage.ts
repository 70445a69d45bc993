/**
 * The origin private file system as an adapter, for code that works with any storage.
 *
 * Invariant: the lock of a store is held from before its first file is opened until after its last one is closed.
 */

import type { LockOptions, StorageAdapter } from './adapter.ts';
import { acquireLock } from './lock.ts';
import { HANDLES_WAIT_MS, OpfsDevice } from './opfs.ts';
import { rootDirectory } from './opfs-directory.ts';
import { deleteStore, listStores } from './stores.ts';

/** Stores of this origin. Opening and listing reject with `OpfsUnavailable` where there can be none. */
export const opfsStorage: StorageAdapter = {
  kind: 'opfs',
  async open(name: string, { lockTimeout, signal }: LockOptions): Promise<OpfsDevice> {
    const lock = await acquireLock(name, { lockTimeout, signal });
    try {
      return await OpfsDevice.open(name, { waitMs: HANDLES_WAIT_MS, signal, onClosed: lock.release });
    } catch (error) {
      await lock.release();
      throw error;
    }
  },
  async list(): Promise<string[]> {
    await rootDirectory({ create: false });
    return listStores();
  },
  delete: (name: string, lock: LockOptions): Promise<boolean> => deleteStore(name, lock),
};
