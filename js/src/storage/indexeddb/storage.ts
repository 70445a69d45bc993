/**
 * Stores in IndexedDB as an adapter, for code that works with any storage.
 *
 * Invariant: the lock of a store is held from before its database is opened until after its connection is closed.
 */

import type { LockOptions, StorageAdapter } from '../adapter.ts';
import type { BufferedDevice } from '../buffered/device.ts';
import { acquireLock } from '../lock.ts';
import { deleteStore } from '../stores.ts';
import { openIndexedDb } from './chunk-store.ts';
import { listDatabases } from './names.ts';

/** Stores of this origin in IndexedDB. Opening rejects with `IndexedDbUnavailable` where there can be none. */
export const indexedDbStorage: StorageAdapter = {
  kind: 'indexeddb',
  async open(name: string, { lockTimeout, signal }: LockOptions): Promise<BufferedDevice> {
    const lock = await acquireLock(name, { lockTimeout, signal });
    try {
      const device = await openIndexedDb(name);
      device.onClosed = lock.release;
      return device;
    } catch (error) {
      lock.release();
      throw error;
    }
  },
  list: listDatabases,
  delete: (name: string, lock: LockOptions): Promise<boolean> => deleteStore(name, lock),
};
