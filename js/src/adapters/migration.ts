/**
 * Moves the entries of an IndexedDB database into a view, once.
 *
 * Invariants: The mark is written, and flushed, when all entries are there. A move that is cut off has no mark: the next one begins anew.
 * A key that is in the view already keeps its value, so nothing that was written meanwhile is lost. The database is only read.
 */

import { hasCode, VarveError } from '../errors.ts';
import type { View } from '../store/view.ts';
import type { Key, Progress } from '../types.ts';
import type { IdbKey } from './idb-keys.ts';

/** Options of `migrate`. */
export interface MigrateOptions {
  /** Ends the move: it rejects with the signal's `reason`. The next call begins anew. */
  signal?: AbortSignal | undefined;
  /** Called from time to time, and once at the end, with the entries of the old database that are moved. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

type Entry<V> = readonly [key: Key, value: V];
/** An entry with its key in the old database. */
type Moved<V> = readonly [...Entry<V>, from: IdbKey];

/** The data to move. */
interface Move<V> {
  /** The name of the database. */
  readonly database: string;
  /** The object stores to move, each with the entry that one of its entries becomes. */
  readonly stores: Readonly<Record<string, (key: IdbKey, value: unknown) => Entry<V>>>;
  readonly view: View<Key, V>;
  /** The entry that shows that all is there. */
  readonly mark: Entry<V>;
}

/** How many entries are read, and written, at a time. */
const PAGE = 64;

/** Moves the entries. Returns how many there were: 0 if they were moved before, or if there is no such database. */
export async function moveOnce<V>(move: Move<V>, { signal, onProgress }: MigrateOptions): Promise<number> {
  const { database, stores, view, mark } = move;
  signal?.throwIfAborted();
  if (await view.has(mark[0], { signal })) return 0;
  const db = await openExisting(database);
  try {
    const names = Object.keys(stores);
    if (!names.every((name) => db?.objectStoreNames.contains(name))) return 0;
    const tx = (db as IDBDatabase).transaction(names);
    const counts = await Promise.all(names.map((name) => resultOf(tx.objectStore(name).count())));
    const total = counts.reduce((sum, count) => sum + count, 0);
    let done = 0;
    for await (const page of pagesOf(db as IDBDatabase, stores)) {
      if (!(await write(move, page, signal))) return 0;
      done += page.length;
      onProgress?.({ done, total });
    }
    await view.set(...mark, { durability: 'strict', signal });
    return done;
  } finally {
    db?.close();
  }
}

/** Writes entries whose keys are not there yet, unless another tab has moved everything meanwhile: then it returns false. */
async function write<V>(move: Move<V>, page: Moved<V>[], signal: AbortSignal | undefined): Promise<boolean> {
  const { view, mark } = move;
  try {
    return await view.transaction(
      async (tx) => {
        if (await tx.has(mark[0])) return false;
        const isThere = await tx.hasMany(page.map(([key]) => key));
        for (const [index, [key, value]] of page.entries()) if (!isThere[index]) tx.set(key, value);
        return true;
      },
      { signal },
    );
  } catch (error) {
    if (!hasCode(error, 'VARVE_INVALID_KEY', 'VARVE_INVALID_VALUE')) throw error;
    if (page.length === 1) {
      const key = JSON.stringify(page[0]?.[2]).slice(0, 80);
      throw new VarveError(error.code, `${error.message} Delete ${key} in IndexedDB, and migrate again.`);
    }
    // One of them cannot be stored, or together they are too long for one batch.
    const half = page.length >> 1;
    return (await write(move, page.slice(0, half), signal)) && write(move, page.slice(half), signal);
  }
}

/** All entries, in pages. Each page is read in a transaction of its own, because writing takes longer than IndexedDB keeps one open. */
async function* pagesOf<V>(db: IDBDatabase, stores: Move<V>['stores']): AsyncGenerator<Moved<V>[]> {
  for (const [name, toEntry] of Object.entries(stores)) {
    let range: IDBKeyRange | undefined;
    for (;;) {
      const store = db.transaction(name).objectStore(name);
      const reads = [resultOf(store.getAllKeys(range, PAGE)), resultOf(store.getAll(range, PAGE))] as const;
      const [keys, values] = await Promise.all(reads);
      if (keys.length === 0) break;
      yield keys.map((key, index) => [...toEntry(key as IdbKey, values[index]), key as IdbKey]);
      range = IDBKeyRange.lowerBound(keys.at(-1), true);
    }
  }
}

/** Opens a database; undefined if there is none. */
function openExisting(name: string): Promise<IDBDatabase | undefined> {
  const request = indexedDB.open(name);
  // It is being created. If that is aborted, there is still none.
  request.onupgradeneeded = () => request.transaction?.abort();
  return resultOf(request).catch((error) => {
    if (error?.name !== 'AbortError') throw error;
    return undefined;
  });
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
