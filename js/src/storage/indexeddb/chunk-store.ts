/**
 * Chunks and journal of a store in IndexedDB.
 *
 * A commit is one transaction that adds one row to the journal, and puts or drops chunks beside it. The row is what keeps
 * others out: its key is the number after that of the last one, and `add` aborts the transaction if there is such a row. Who
 * takes a store over adds that row itself, under a higher epoch from then on, so whatever a former holder still sends
 * fails as a whole. (Asking for the epoch first would hold every commit up for a round trip between processes.)
 *
 *     epoch 1   [1,0] [1,1] ... [1,17] [1,18]      the last one, empty, was added by epoch 2
 *     epoch 2   [2,0] [2,1] ...
 *
 * Invariant: a promise resolves at `complete`. A transaction that the end of its connection aborted is tried again once
 * the journal told that it is not in it.
 */

import { unwrap } from 'idb';
import type { ChunkName, ChunkStore, Commit } from '../buffered/chunk-store.ts';
import { BufferedDevice } from '../buffered/device.ts';
import { SlotError, type SlotErrorKind } from '../device.ts';
import { nameOf } from '../opfs-directory.ts';
import { originStorage } from '../origin.ts';
import { DatabaseMissing, openDatabase, type StoreDatabase } from './database.ts';

/** One row of a journal. */
const ROW_BYTES_MAX = 1024 * 1024;
/** Former holders that are kept out for good. */
const FENCES_MAX = 256;
/** How often a connection is made anew for one transaction. */
const ATTEMPTS_MAX = 3;
/** Above every number, in the order of keys. */
const END: never[] = [];

/** The database of one store as chunks. */
export class IndexedDbChunks implements ChunkStore {
  readonly kind = 'indexeddb';
  readonly rowBytesMax = ROW_BYTES_MAX;
  readonly #name: string;
  #database: StoreDatabase | undefined;
  #connecting: Promise<StoreDatabase> | undefined;
  #epoch = 0;
  /** Number of the next row. */
  #next = 0;
  /** Earlier epochs whose rows are needed until the journal is folded, each with where its fence is. */
  #earlier: [number, number][] = [];
  #isClosed = false;

  constructor(name: string) {
    this.#name = name;
  }

  async takeOver(): Promise<Uint8Array[]> {
    const database = await this.#connect(true);
    // Not strict: what would be lost with the machine is the end of what was committed, and with it whoever is kept out.
    const transaction = database.transaction('journal', 'readwrite', { durability: 'relaxed' });
    const { store: journal } = transaction;
    const [keys, rows] = await Promise.all([journal.getAllKeys(), journal.getAll()]);
    const last = keys.at(-1) ?? [0, -1];
    const ends = new Map<number, number>(keys);
    ends.set(last[0], last[1] + 1);
    const epoch = last[0] + 1;
    await Promise.all([
      last[0] > 0 && journal.add(new Uint8Array(0), [last[0], last[1] + 1]),
      journal.add(new Uint8Array(0), [epoch, 0]),
      epoch > FENCES_MAX && journal.delete(IDBKeyRange.upperBound([epoch - FENCES_MAX, 0], true)),
      transaction.done,
    ]).catch((error: unknown) => {
      throw slotError(error);
    });
    this.#epoch = epoch;
    this.#next = 1;
    // Of most there is nothing left but the fence.
    const rowsOf = (one: number): number => keys.filter(([other]) => other === one).length;
    this.#earlier = [...ends].filter(([one]) => one === last[0] || rowsOf(one) > 1).filter(([one]) => one > 0);
    return rows.filter((row) => row.length > 0);
  }

  async rows(): Promise<Uint8Array[]> {
    return this.#attempt(async (database) => {
      const transaction = database.transaction('journal', 'readonly');
      const journal = transaction.objectStore('journal');
      const rows = journal.getAll() as IDBRequest<Uint8Array[]>;
      const later = this.#countLater(journal);
      await complete(transaction);
      if (later.result > 0) throw taken();
      return rows.result.filter((row) => row.length > 0);
    });
  }

  async read(names: readonly ChunkName[]): Promise<(Uint8Array | undefined)[]> {
    return this.#attempt(async (database) => {
      const transaction = database.transaction(['chunks', 'journal'], 'readonly');
      const chunks = transaction.objectStore('chunks');
      const requests = names.map(({ slot, index }) => chunks.get([slot, index]) as IDBRequest<Uint8Array | undefined>);
      // Once somebody else has the store, chunks may be of his making.
      const later = this.#countLater(transaction.objectStore('journal'));
      await answered(transaction, later);
      if (later.result > 0) throw taken();
      return requests.map((request) => request.result);
    });
  }

  async commit(commit: Commit): Promise<void> {
    let isSent = false;
    await this.#attempt(async (database) => {
      if (isSent && (await this.#isIn(database))) return;
      isSent = true;
      await complete(this.#send(database, commit));
    });
    this.#next++;
    if (commit.folds) this.#earlier = [];
  }

  async freeBytes(): Promise<number | undefined> {
    const origin = await originStorage();
    return origin === undefined ? undefined : Math.max(0, origin.quotaBytes - origin.usageBytes);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const database = await this.#connecting?.catch(() => undefined);
    database?.close();
  }

  /** Rows of whoever took the store over. */
  #countLater(journal: IDBObjectStore): IDBRequest<number> {
    return journal.count(IDBKeyRange.lowerBound([this.#epoch + 1, 0]));
  }

  #send(database: IDBDatabase, { row, drops, puts, folds, isStrict }: Commit): IDBTransaction {
    const names = drops.length + puts.length > 0 ? ['journal', 'chunks'] : 'journal';
    const transaction = database.transaction(names, 'readwrite', { durability: isStrict ? 'strict' : 'relaxed' });
    const journal = transaction.objectStore('journal');
    journal.add(row, [this.#epoch, this.#next]);
    if (names !== 'journal') {
      const chunks = transaction.objectStore('chunks');
      for (const { slot, index } of drops) chunks.delete(IDBKeyRange.bound([slot, index], [slot, END]));
      for (const { slot, index, bytes } of puts) chunks.put(bytes, [slot, index]);
    }
    if (folds) {
      for (const [epoch, fence] of this.#earlier)
        journal.delete(IDBKeyRange.bound([epoch, 0], [epoch, fence], false, true));
      journal.delete(IDBKeyRange.bound([this.#epoch, 0], [this.#epoch, this.#next], false, true));
    }
    // Not every implementation has it; without it the transaction commits once its requests have been answered.
    transaction.commit?.();
    return transaction;
  }

  /** Whether the row that was sent last is in the journal; throws when it is somebody else's. */
  async #isIn(database: IDBDatabase): Promise<boolean> {
    const transaction = database.transaction('journal', 'readonly');
    const journal = transaction.objectStore('journal');
    const before = journal.count([this.#epoch, this.#next - 1]);
    const row = journal.get([this.#epoch, this.#next]) as IDBRequest<Uint8Array | undefined>;
    await complete(transaction);
    if (row.result !== undefined && row.result.length > 0) return true;
    if (row.result !== undefined || before.result === 0) throw taken();
    return false;
  }

  /** Runs transactions, on a new connection should the browser have ended the old one. */
  async #attempt<T>(call: (database: IDBDatabase) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const isFresh = this.#database === undefined;
      const database = await this.#connect(false);
      try {
        // A database of that name may have been deleted and made anew meanwhile.
        if (isFresh) await this.#isIn(unwrap(database));
        return await call(unwrap(database));
      } catch (error) {
        const isLost = this.#database !== database || LOST.includes(nameOf(error));
        if (!isLost || error instanceof SlotError || attempt === ATTEMPTS_MAX) throw slotError(error);
        database.close();
        this.#forget(database);
      }
    }
  }

  async #connect(create: boolean): Promise<StoreDatabase> {
    if (this.#isClosed) throw new SlotError('closed', 'The connection was closed.');
    if (this.#connecting === undefined) {
      const connecting = openDatabase(this.#name, { create, onLost: () => this.#forget(this.#database) });
      this.#connecting = connecting;
      try {
        this.#database = await connecting;
      } catch (error) {
        this.#connecting = undefined;
        if (create) throw error;
        const kind = error instanceof DatabaseMissing ? 'closed' : 'io';
        const { message } = error as Error;
        throw new SlotError(kind, message, { cause: error });
      }
    }
    return this.#connecting;
  }

  #forget(database: StoreDatabase | undefined): void {
    if (database !== this.#database) return;
    this.#database = undefined;
    this.#connecting = undefined;
  }
}

/** Opens the device of a store in IndexedDB, making it where there is none. */
export async function openIndexedDb(name: string): Promise<BufferedDevice> {
  const chunks = new IndexedDbChunks(name);
  try {
    return await BufferedDevice.open(chunks);
  } catch (error) {
    await chunks.close();
    throw error;
  }
}

/** What a transaction says when its connection is no more. */
const LOST = ['InvalidStateError', 'AbortError', 'UnknownError', 'TransactionInactiveError'];

function complete(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new DOMException('It was aborted.', 'AbortError'));
  });
}

/**
 * Resolves when the last request of a transaction that only reads was answered, and with it those before: `complete` comes
 * a round trip between processes later.
 */
function answered(transaction: IDBTransaction, last: IDBRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    last.onsuccess = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new DOMException('It was aborted.', 'AbortError'));
  });
}

function taken(): SlotError {
  return new SlotError('closed', 'Another tab or worker has taken the store over.');
}

function slotError(error: unknown): unknown {
  if (error instanceof SlotError) return error;
  const name = nameOf(error);
  if (name === 'ConstraintError') return taken();
  const kind: SlotErrorKind = name === 'QuotaExceededError' ? 'full' : 'io';
  return new SlotError(kind, error instanceof Error ? error.message : String(error), { cause: error });
}
