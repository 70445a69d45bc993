/**
 * Deletes a store that other tabs may have open: they are asked to close it.
 *
 * Invariant: while a store is deleted, no tab has it open or waits to lead it. Otherwise a tab would find an empty store in the place
 * of its own. The lock of open stores ensures this.
 */

import { isAdapter, type LockOptions, type StorageAdapter } from '../storage/adapter.ts';
import { deleteStore } from '../storage/stores.ts';
import { type ChannelMessage, canShare, channelOf, PROTOCOL, uniqueName } from './names.ts';

/**
 * Removes a store and everything in it.
 * @param lock How long others have to close it; with 0 they are not asked.
 * @returns Whether the store existed.
 * @throws `VARVE_LOCKED` while somebody has it open.
 */
export async function deleteShared(name: string, lock: LockOptions, adapter?: StorageAdapter): Promise<boolean> {
  if (lock.lockTimeout === 0 || isAdapter(adapter) || !canShare()) return deleteStore(name, lock, adapter);
  const channel = new BroadcastChannel(channelOf(name));
  try {
    channel.postMessage({ type: 'delete', from: uniqueName(), protocol: PROTOCOL } satisfies ChannelMessage);
    return await deleteStore(name, lock);
  } finally {
    channel.close();
  }
}
