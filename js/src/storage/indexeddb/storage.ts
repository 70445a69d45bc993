/**
 * Stores in IndexedDB as an adapter, for code that works with any storage.
 *
 * Invariant: the lock of a store is held from before its database is opened until after its connection is closed.
 */

import type { StorageAdapter } from '../adapter.ts';
import { acquireLock } from '../lock.ts';
import type { OpenIndexedDb } from '../open-device.ts';
import { deleteStore } from '../stores.ts';
import { listDatabases } from './names.ts';

/** Stores of this origin in IndexedDB. Opening rejects with `Unavailable` where there can be none. */
export const indexedDbStorage = (openIndexedDb: OpenIndexedDb): StorageAdapter => ({
  kind: 'indexeddb',
  async open(name, { lockTimeout, signal }) {
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
  delete: deleteStore,
});
