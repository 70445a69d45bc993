/**
 * Which realms can open stores in the origin private file system: those with synchronous handles, mainly dedicated workers.
 *
 * Invariant: a realm without them is always refused, even while a page has the store open and could serve it. An access that works
 * only as long as some page is open would fail for the first push that finds no page.
 */

import { VarveError } from '../errors.ts';

/** Whether this realm has synchronous file handles. */
export function hasSyncHandles(): boolean {
  return typeof globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle === 'function';
}

/** The error when a realm without synchronous handles opens a store in OPFS. */
export function outOfReach(name: string): VarveError {
  return new VarveError(
    'VARVE_UNSUPPORTED',
    `The store "${name}" is in the origin private file system, which only dedicated workers can open, not service workers, nor a page by itself. Keep what they share with pages in IndexedDB: open it with storage: 'indexeddb' on both sides (export() and import() move what is there).`,
  );
}
