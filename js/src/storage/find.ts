/**
 * Finds stores in the two storages of this origin.
 *
 * Invariant: a storage that refuses to answer is not a storage without the store. It is asked again for a moment. It is passed over
 * only if the other storage, which keeps its notes, has none of the store; or if this origin may not use it, and the other storage
 * cannot answer either. In any other case the caller gets an error: a store that was made now would hide the one that is there.
 */

import { VarveError } from '../errors.ts';
import { delay } from '../runtime/wait.ts';
import { type CanaryKind, hasCanary } from './canary.ts';
import { databaseName, hasDatabase, listDatabases } from './indexeddb/names.ts';
import { nameOf, rootDirectory, storeDirectory } from './opfs-directory.ts';
import { Unavailable } from './unavailable.ts';

/** The pauses double from 50 ms up to this. */
const PAUSE_MS_MAX = 200;

/** The directory of a store in the origin private file system. */
export function findInOpfs(name: string): Promise<FileSystemDirectoryHandle | undefined> {
  return ask('opfs', name, () => storeDirectory(name, { create: false }));
}

/** The directory over all stores there, to look for this one, or for any. */
export function findRoot(name?: string): Promise<FileSystemDirectoryHandle | undefined> {
  return ask('opfs', name, () => rootDirectory({ create: false }));
}

/** Whether IndexedDB has a store of this name; undefined where it is passed over. */
export function isInIndexedDb(name: string): Promise<boolean | undefined> {
  return ask('indexeddb', name, () => hasDatabase(databaseName(name)));
}

/** Whether this origin has a store of this name. */
export async function isInOrigin(name: string): Promise<boolean> {
  return (await findInOpfs(name)) !== undefined || (await isInIndexedDb(name)) === true;
}

/** Names of the stores in IndexedDB; undefined where it is passed over. */
export function listInIndexedDb(): Promise<string[] | undefined> {
  return ask('indexeddb', undefined, listDatabases);
}

/** Whether this is why a storage does not exist here, or why this origin may not use it, now or later. */
export function isLasting(cause: unknown): boolean {
  return cause === undefined || nameOf(cause) === 'SecurityError';
}

/**
 * Calls until a storage is available. Resolves with undefined once `maySkip` agrees to go on without it.
 * @throws `VARVE_UNAVAILABLE` when that takes too long.
 */
export async function insist<T>(
  call: () => Promise<T>,
  maySkip: (error: unknown) => boolean | Promise<boolean>,
): Promise<T | undefined> {
  for (let pause = 50; ; pause *= 2) {
    try {
      return await call();
    } catch (cause) {
      if (await maySkip(cause)) return undefined;
      if (pause > PAUSE_MS_MAX) {
        const message = `A storage that may have the store is unavailable just now. Try again. ${(cause as Error).message}`;
        throw new VarveError('VARVE_UNAVAILABLE', message, { cause });
      }
    }
    await delay(pause);
  }
}

/** Asks a storage that may have this store; without a name, any store. */
function ask<T>(kind: CanaryKind, name: string | undefined, call: () => Promise<T>): Promise<T | undefined> {
  return insist(call, async (error) => {
    const cause = error instanceof Unavailable ? error.cause : error;
    const wasThere = cause !== undefined && (await hasCanary(name, kind));
    return wasThere === undefined ? isLasting(cause) : !wasThere;
  });
}
