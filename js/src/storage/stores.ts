/**
 * The stores of this origin: which there are, and removing one.
 *
 * Invariant: a store is removed under its lock only, so never under a worker that has it open.
 */

import { VarveError } from '../errors.ts';
import { isAdapter, type StorageAdapter } from './adapter.ts';
import { acquireLock } from './lock.ts';
import { escapeName, unescapeName } from './names.ts';
import { nameOf, OpfsUnavailable, rootDirectory } from './opfs-directory.ts';

/** Names of the stores of this origin, sorted. Empty where the browser has no origin private file system. */
export async function listStores(adapter?: StorageAdapter): Promise<string[]> {
  if (isAdapter(adapter)) return (await adapter.list()).sort();
  const root = await rootOrNone();
  const names: string[] = [];
  if (root === undefined) return names;
  for await (const [directory, handle] of root.entries()) {
    const name = handle.kind === 'directory' ? unescapeName(directory) : undefined;
    if (name !== undefined) names.push(name);
  }
  return names.sort();
}

/**
 * Removes a store and everything in it.
 * @param wait Milliseconds to wait for another holder to close it (0: do not wait).
 * @returns Whether it was there.
 * @throws `VARVE_LOCKED` while another tab or worker has it open.
 */
export async function deleteStore(name: string, wait = 0, adapter?: StorageAdapter): Promise<boolean> {
  if (isAdapter(adapter)) return adapter.delete(name, { wait });
  const directory = escapeName(name);
  const lock = await acquireLock(name, { wait });
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
  } finally {
    lock.release();
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
