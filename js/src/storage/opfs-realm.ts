/**
 * Which realms can open stores in the origin private file system: those with synchronous handles, dedicated workers most of all.
 *
 * Invariant: a realm that cannot is refused always, also while a page has the store open and would answer for it: what works only as
 * long as some page is there fails for the first push that finds none.
 */

import { VarveError } from '../errors.ts';

/** Whether this realm has synchronous file handles. */
export function hasSyncHandles(): boolean {
  return typeof globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle === 'function';
}

/** Why a store in OPFS is not opened from a realm without them. */
export function outOfReach(name: string): VarveError {
  return new VarveError(
    'VARVE_UNSUPPORTED',
    `The store "${name}" is in the origin private file system, which only dedicated workers can open, not service workers, nor a page by itself. Keep what they share with pages in IndexedDB: open it with storage: 'indexeddb' on both sides (export() and import() move what is there).`,
  );
}
