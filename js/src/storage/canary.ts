/**
 * Canaries: a note, in the other storage of the origin, that a store was made in this one.
 *
 *     store in OPFS         row of the IndexedDB database "varve"
 *     store in IndexedDB    directory of OPFS: varve-canaries/<store name, escaped>
 *
 * When a browser clears one storage (a bug, a cleaner, a user in its developer tools), the note stays. A store that is made anew beside
 * the note was lost before. When a browser clears the origin, as the eviction of storage does, it removes both: then the store is
 * new, and the loss cannot be detected.
 *
 * Invariant: a failure here is silent, and means only that nothing is known. Only a note that was read prevents anything: a new store in
 * the place of one in a storage that is refused just now (`find.ts`).
 */

import { hasDatabase, resultOf } from './indexeddb/names.ts';
import { escapeName } from './names.ts';
import { originDirectory } from './opfs-directory.ts';

/** The storages; each keeps the canaries of the other. */
export type CanaryKind = 'opfs' | 'indexeddb';

const DATABASE = 'varve';
const ROWS = 'stores';
const DIRECTORY = 'varve-canaries';

/** Notes that a store of this name is in the storage `kind`. */
export function plantCanary(name: string, kind: CanaryKind): Promise<void> {
  return quietly(undefined, async () => {
    if (kind === 'opfs') await inRows('readwrite', (rows) => rows.put(kind, name));
    else await (await canaries(true)).getDirectoryHandle(escapeName(name), { create: true });
  });
}

/** Whether a store of this name (without a name: any store) was in the storage `kind`; undefined if the other storage does not tell. */
export function hasCanary(name: string | undefined, kind: CanaryKind): Promise<boolean | undefined> {
  return quietly(undefined, async () => {
    if (kind === 'opfs') {
      return (await hasDatabase(DATABASE)) && (await inRows('readonly', (rows) => rows.count(name))) > 0;
    }
    for await (const note of (await canaries(true)).keys()) {
      if (name === undefined || note === escapeName(name)) return true;
    }
    return false;
  });
}

/** Removes the notes of a store. Call it before the store is deleted, so that an interrupted deletion leaves no note. */
export async function removeCanaries(name: string): Promise<void> {
  await quietly(undefined, async () => {
    if (await hasDatabase(DATABASE)) await inRows('readwrite', (rows) => rows.delete(name));
  });
  await quietly(undefined, async () => (await canaries(false)).removeEntry(escapeName(name)));
}

async function canaries(create: boolean): Promise<FileSystemDirectoryHandle> {
  return (await originDirectory()).getDirectoryHandle(DIRECTORY, { create });
}

async function inRows<T>(mode: 'readonly' | 'readwrite', call: (rows: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(ROWS);
  const database = await resultOf(opening);
  try {
    const transaction = database.transaction(ROWS, mode);
    const done = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    const [result] = await Promise.all([resultOf(call(transaction.objectStore(ROWS))), done]);
    return result;
  } finally {
    database.close();
  }
}

async function quietly<T>(otherwise: T, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch {
    return otherwise;
  }
}
