/**
 * A storage that is passed to `open`: files of a server runtime, the database of a Durable Object, or your own.
 *
 * Invariant: an adapter gives a store to one opener at a time: from the `open` that resolved until the device's
 * `closeAll` did. An adapter is in one realm, so the engine of its stores runs in that realm too.
 */

import { invalid } from '../errors.ts';
import type { ManagedDevice } from './device.ts';

/** How long an `open` waits while somebody else has the store open, unless its caller gives another time, in milliseconds. */
export const LOCK_TIMEOUT_DEFAULT = 5000;
/** `memoryBytes` of a store for which none are given. */
export const MEMORY_BYTES_DEFAULT: number = 32 * 2 ** 20;

/** How long `StorageAdapter.open` and `delete` may wait while somebody else has the store open. */
export interface LockOptions {
  /** Milliseconds; 0 asks once. */
  readonly lockTimeout: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Where stores are kept. Pass one as the option `storage` of `open`, `listStores`, `deleteStore`, `check` and `repair`.
 *
 * @example
 * import { open } from 'varve';
 * import { files } from 'varve/fs';
 * const db = await open('notes', { storage: files('./data') });
 */
export interface StorageAdapter {
  /** The value of `db.storage.kind`. */
  readonly kind: string;
  /**
   * Opens the slots of a store, making it where there is none.
   * @throws `VARVE_LOCKED` while somebody else has it open, `VARVE_UNSUPPORTED` where there is no such storage, `VARVE_UNAVAILABLE` while
   * it cannot be used.
   */
  open(name: string, options: LockOptions): Promise<ManagedDevice>;
  /** Names of the stores, in any order. */
  list(): Promise<string[]>;
  /**
   * Removes a store and everything in it; resolves with whether there was one.
   * @throws `VARVE_LOCKED` while somebody has it open.
   */
  delete(name: string, options: LockOptions): Promise<boolean>;
}

/** Whether an option `storage` is an adapter; throws for a value that is neither an adapter nor a string. */
export function isAdapter(storage: unknown): storage is StorageAdapter {
  if (storage === undefined || typeof storage === 'string') return false;
  const adapter = storage as Partial<StorageAdapter> | null;
  if (typeof adapter?.open === 'function' && typeof adapter.kind === 'string') return true;
  throw invalid('storage is a name or an adapter.');
}
