/**
 * The stores of this origin: lists them, and removes one.
 *
 * Invariant: a store is removed under its lock only, so never under a worker that has it open.
 */

import { VarveError } from '../errors.ts';
import { isAdapter, type LockOptions, type StorageAdapter } from './adapter.ts';
import { removeCanaries } from './canary.ts';
import { findRoot, isInIndexedDb, listInIndexedDb } from './find.ts';
import { databaseName, deleteDatabase } from './indexeddb/names.ts';
import { acquireLock } from './lock.ts';
import { escapeName, unescapeName } from './names.ts';
import { nameOf } from './opfs-directory.ts';

/** Names of the stores of this origin, in any of its storages, sorted. */
export async function listStores(adapter?: StorageAdapter): Promise<string[]> {
  if (isAdapter(adapter)) return (await adapter.list()).sort();
  const names = new Set(await listInIndexedDb());
  const root = await findRoot();
  if (root === undefined) return [...names].sort();
  for await (const [directory, handle] of root.entries()) {
    const name = handle.kind === 'directory' ? unescapeName(directory) : undefined;
    if (name !== undefined) names.add(name);
  }
  return [...names].sort();
}

/**
 * Removes a store and everything in it, from every storage that has one of this name.
 * @returns Whether it existed.
 * @throws `VARVE_LOCKED` while another tab or worker has it open; `VARVE_UNAVAILABLE`, with nothing removed, while the browser refuses a
 * storage that may have it; the signal's `reason` when it aborts while this waits.
 */
export async function deleteStore(name: string, lock: LockOptions, adapter?: StorageAdapter): Promise<boolean> {
  if (isAdapter(adapter)) return adapter.delete(name, lock);
  const directory = escapeName(name);
  const { release } = await acquireLock(name, lock);
  try {
    const root = await findRoot(name);
    const isInDatabase = await isInIndexedDb(name);
    await removeCanaries(name);
    if (isInDatabase) await deleteDatabase(databaseName(name), lock.lockTimeout);
    return (await removeDirectory(root, directory)) || isInDatabase === true;
  } finally {
    await release();
  }
}

async function removeDirectory(root: FileSystemDirectoryHandle | undefined, directory: string): Promise<boolean> {
  try {
    await root?.removeEntry(directory, { recursive: true });
    return root !== undefined;
  } catch (cause) {
    if (nameOf(cause) === 'NotFoundError') return false;
    if (nameOf(cause) === 'NoModificationAllowedError') {
      throw new VarveError('VARVE_LOCKED', 'A file of the store is still open in another tab or worker.', { cause });
    }
    throw cause;
  }
}
