/**
 * The stores of this origin: lists them, and removes one.
 *
 * Invariant: a store is removed under its lock only, so never under a worker that has it open.
 */

import { VarveError } from '../errors.ts';
import { isAdapter, type LockOptions, type StorageAdapter } from './adapter.ts';
import { removeCanaries } from './canary.ts';
import { databaseName, deleteDatabase, listDatabases } from './indexeddb/names.ts';
import { acquireLock } from './lock.ts';
import { escapeName, unescapeName } from './names.ts';
import { nameOf, OpfsUnavailable, rootDirectory } from './opfs-directory.ts';

/** Names of the stores of this origin, in any of its storages, sorted. */
export async function listStores(adapter?: StorageAdapter): Promise<string[]> {
  if (isAdapter(adapter)) return (await adapter.list()).sort();
  const names = new Set(await listDatabases());
  const root = await rootOrNone();
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
 * @throws `VARVE_LOCKED` while another tab or worker has it open; the signal's `reason` when it aborts while this waits.
 */
export async function deleteStore(name: string, lock: LockOptions, adapter?: StorageAdapter): Promise<boolean> {
  if (isAdapter(adapter)) return adapter.delete(name, lock);
  const directory = escapeName(name);
  const { release } = await acquireLock(name, lock);
  try {
    await removeCanaries(name);
    const wasInDatabase = await deleteDatabase(databaseName(name), lock.lockTimeout);
    return (await removeDirectory(directory)) || wasInDatabase;
  } finally {
    await release();
  }
}

async function removeDirectory(directory: string): Promise<boolean> {
  try {
    const root = await rootOrNone();
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

async function rootOrNone(): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    return await rootDirectory({ create: false });
  } catch (error) {
    if (error instanceof OpfsUnavailable) return undefined;
    throw error;
  }
}
