/**
 * Moves the entries of an IndexedDB database into a view, once.
 *
 * Invariants: The mark is written, and flushed, when all entries are there. A move that is cut off has no mark: the next one begins anew.
 * A key that is in the view already keeps its value, so nothing that was written meanwhile is lost. The database is only read. Tabs that
 * move at the same time share the work: each writes what is not there yet, and none reports an end before the mark is flushed.
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

/** The result of a `migrate`. All that it reports is flushed to the disk. */
export interface MigrationReport {
  /** How many entries this call has written. Those that were there already, from a call that was cut off for example, do not count. */
  readonly copied: number;
  /**
   * `copied`: this call went through the old database to its end. `before`: all was there already, or another tab came to the end first.
   * `absent`: there is no such database, and none was copied before.
   */
  readonly state: 'copied' | 'before' | 'absent';
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

/** Moves the entries. */
export async function moveOnce<V>(move: Move<V>, { signal, onProgress }: MigrateOptions): Promise<MigrationReport> {
  const { database, stores, view, mark } = move;
  const isMarked = (): Promise<boolean> => view.has(mark[0], { signal });
  let copied = 0;
  const before = async (): Promise<MigrationReport> => {
    // The tab that wrote the mark may not have flushed it yet.
    await view.flush({ signal });
    return { copied, state: 'before' };
  };
  signal?.throwIfAborted();
  if (await isMarked()) return before();
  const db = await openExisting(database);
  try {
    const names = Object.keys(stores);
    if (!names.every((name) => db?.objectStoreNames.contains(name))) {
      // Another tab may have moved all, and deleted the database.
      return (await isMarked()) ? before() : { copied, state: 'absent' };
    }
    const tx = (db as IDBDatabase).transaction(names);
    const counts = await Promise.all(names.map((name) => resultOf(tx.objectStore(name).count())));
    const total = counts.reduce((sum, count) => sum + count, 0);
    let done = 0;
    for await (const page of pagesOf(db as IDBDatabase, stores)) {
      const isOpen = await write(move, page, signal, (count) => {
        copied += count;
      });
      if (!isOpen) return before();
      done += page.length;
      onProgress?.({ done, total });
    }
    await view.set(...mark, { durability: 'strict', signal });
    return { copied, state: 'copied' };
  } finally {
    db?.close();
  }
}

/** Writes entries whose keys are not there yet, unless another tab has moved everything meanwhile: then it returns false. */
async function write<V>(
  move: Move<V>,
  page: Moved<V>[],
  signal: AbortSignal | undefined,
  wrote: (count: number) => void,
): Promise<boolean> {
  const { view, mark } = move;
  try {
    const count = await view.transaction(
      async (tx) => {
        if (await tx.has(mark[0])) return undefined;
        const isThere = await tx.hasMany(page.map(([key]) => key));
        const missing = page.filter((_, index) => !isThere[index]);
        for (const [key, value] of missing) tx.set(key, value);
        return missing.length;
      },
      { signal },
    );
    wrote(count ?? 0);
    return count !== undefined;
  } catch (error) {
    if (!hasCode(error, 'VARVE_INVALID_KEY', 'VARVE_INVALID_VALUE', 'VARVE_INVALID_ARGUMENT')) throw error;
    if (page.length === 1) {
      const key = JSON.stringify(page[0]?.[2]).slice(0, 80);
      throw new VarveError(error.code, `${error.message} Delete ${key} in IndexedDB, and migrate again.`);
    }
    // One of them cannot be stored, or together they are too long for one batch.
    const half = page.length >> 1;
    return (await write(move, page.slice(0, half), signal, wrote)) && write(move, page.slice(half), signal, wrote);
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
