/**
 * The IndexedDB databases of this origin that are stores: their names, whether there is one, removing one.
 *
 * Invariant: this module does not load the code that opens databases, so a caller that only has to find a store loads little. Where
 * there is no IndexedDB there are none. Where the browser refuses to tell, the caller gets its error.
 */

import { VarveError } from '../../errors.ts';

const PREFIX = 'varve:';

/** The database of a store. */
export function databaseName(store: string): string {
  return PREFIX + store;
}

/** Names of the stores that have a database; none where the browser does not list databases. */
export async function listDatabases(): Promise<string[]> {
  const names = (await allDatabases()) ?? [];
  return names.flatMap((name) => (name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : []));
}

/** Whether there is a database of this name. The check creates nothing. */
export async function hasDatabase(name: string): Promise<boolean> {
  const names = await allDatabases().catch(() => undefined);
  if (names !== undefined) return names.includes(name);
  if (globalThis.indexedDB === undefined) return false;
  // A browser that lists no databases is asked by opening one, which is aborted before anything is created.
  const opening = indexedDB.open(name);
  let isThere = true;
  opening.onupgradeneeded = () => {
    isThere = false;
    opening.transaction?.abort();
  };
  try {
    (await resultOf(opening)).close();
  } catch (error) {
    if (isThere) throw error;
  }
  return isThere;
}

/**
 * Removes a database that nobody has open.
 * @throws `VARVE_LOCKED` when a connection to it stays open for longer than `lockTimeout` milliseconds.
 */
export async function deleteDatabase(name: string, lockTimeout: number): Promise<void> {
  const deleting = indexedDB.deleteDatabase(name);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const blocked = new Promise<never>((_, reject) => {
    deleting.onblocked = () => {
      timer = setTimeout(() => {
        reject(new VarveError('VARVE_LOCKED', 'The database of the store is still open in another tab or worker.'));
      }, lockTimeout);
    };
  });
  try {
    await Promise.race([resultOf(deleting), blocked]);
  } finally {
    clearTimeout(timer);
  }
}

/** The result of a request. */
export function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Names of all databases; undefined where the browser does not list them. */
async function allDatabases(): Promise<string[] | undefined> {
  const databases = await globalThis.indexedDB?.databases?.();
  return databases?.flatMap(({ name }) => (name === undefined ? [] : [name]));
}
