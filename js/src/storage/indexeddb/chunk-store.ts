/**
 * Chunks and journal of a store in IndexedDB.
 *
 * A commit is one transaction that adds one row to the journal, and puts or drops chunks beside it. The row keeps others out: its
 * key is the number after that of the last row, and `add` aborts the transaction if that row exists. A holder that takes a store
 * over adds that row itself, and from then on uses a higher epoch. So everything that a former holder still sends fails as a
 * whole. (Asking for the epoch first would delay every commit by a round trip between processes.)
 *
 *     epoch 1   [1,1] ... [1,17] [1,18]      the last one, empty, was added by epoch 2, which removed [1,0]
 *     epoch 2   [2,0] [2,1] ...
 *
 * Where there is no room for these rows, the first commit adds them before its own. So a full store opens, and the former holder is
 * kept out as soon as anything is written.
 *
 * Chromium keeps short values in a log-structured store. Values that are overwritten or deleted there still count against the quota, for
 * ever if nothing else is written. A value of 64 KiB or more has a file, which is removed in the same turn as its row. So in Chromium
 * chunks are stored at their full length, with all zeros, and scrambled: Chromium would keep a value that compresses to less with the
 * short ones. (A Blob has a file, too, but keeps it until the garbage collector has found every Blob that a read returned.) A later
 * commit does not flush a file, so a commit that has files is strict.
 *
 * Invariant: a promise resolves at `complete`. When the end of its connection aborted a transaction, it is tried again, once the
 * journal has shown that it does not contain it.
 */

import { unwrap } from 'idb';
import { CHUNK_BYTES, trimmed } from '../buffered/chunk.ts';
import type {
  ChunkName,
  ChunkReserve,
  ChunkStore,
  Commit,
  FoundChunk,
  Need,
  ReadAhead,
} from '../buffered/chunk-store.ts';
import { BufferedDevice } from '../buffered/device.ts';
import { SlotError, type SlotErrorKind } from '../device.ts';
import { nameOf } from '../opfs-directory.ts';
import { originStorage } from '../origin.ts';
import { DatabaseMissing, openDatabase, type StoreDatabase } from './database.ts';
import { resultOf } from './names.ts';
import { type RowKey, type Succession, successionTo } from './succession.ts';

/** Most bytes of one row of a journal. */
const ROW_BYTES_MAX = 1024 * 1024;
/** How many connections one transaction may try. */
const ATTEMPTS_MAX = 3;
/** A key part that sorts above every number. */
const END: never[] = [];
/** Chunks with at least this many bytes get a file of their own, in a browser that has such files. */
const FILE_BYTES_MIN = 16 * 1024;
/** After this time at the latest, the room of files whose rows are gone is free. */
const FILES_GO_MS = 1000;
/** For this long, a commit of more than `SHORT_BYTES` is not sent again where it would be refused. */
const ASK_MS = 5000;
const SHORT_BYTES = 64 * 1024;
/** The reserve lies among the chunks, under the number of a slot that does not exist. */
const RESERVE_SLOT = 0xffffffff;
const RESERVE_BYTES: readonly number[] = [768 * 1024, 1280 * 1024, 128 * 1024, 128 * 1024, 1];
/** How many of the pieces each need may use, from the first one on. The last piece stays: it shows that there was a reserve. */
const PIECES: Readonly<Record<Need, number>> = { any: 1, full: 2, small: 4 };

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
  /** Earlier epochs whose rows are needed until the journal is folded, each with the number of its fence. */
  #earlier: RowKey[] = [];
  /** The rows that keep others out, as long as they are still to be added. */
  #fences: RowKey[] = [];
  /** The rows that are removed when these are added. */
  #outdated: readonly RowKey[] = [];
  /** Resolves when the fences are added, or when there was no room for them. */
  #taking: Promise<void> = Promise.resolve();
  #isTaking = false;
  /** The last row of the journal that was taken over. */
  #last: RowKey | undefined;
  /** The origin may take fewer bytes than this, as a refused commit showed. Chromium does not report its quota. */
  #bytesMax = Number.POSITIVE_INFINITY;
  /** From this time on, the browser is asked again. */
  #askFrom = 0;
  /** How many pieces of the reserve there were when the store was taken over. */
  #pieces = 0;
  #isClosed = false;

  readonly reserve: ChunkReserve = {
    patienceMs: hasFiles() ? FILES_GO_MS : 0,
    wasGiven: () => this.#pieces > 0 && this.#pieces < RESERVE_BYTES.length,
    complete: () => this.#completeReserve(),
    give: (need) => this.#giveReserve(PIECES[need]),
  };

  constructor(name: string) {
    this.#name = name;
  }

  async takeOver(wanted: (rows: Uint8Array[]) => readonly ChunkName[], ahead?: ReadAhead): Promise<FoundChunk[]> {
    const database = unwrap(await this.#connect(true));
    // Not strict: a crash of the machine loses only the last commits, and it also ends the holder that these rows keep out.
    const transaction = database.transaction(['journal', 'chunks'], 'readwrite', { durability: 'relaxed' });
    const journal = transaction.objectStore('journal');
    const chunks = transaction.objectStore('chunks');
    const taking = complete(transaction).then(
      () => {
        this.#fences = [];
      },
      (error: unknown) => {
        const refusal = slotError(error);
        // A new store has nothing to read, so it does not open without room.
        if (!(refusal instanceof SlotError) || refusal.kind !== 'full' || this.#last === undefined) throw refusal;
      },
    );
    const settled = (): void => {
      this.#isTaking = false;
    };
    this.#isTaking = true;
    taking.then(settled, settled);
    this.#taking = taking;
    const pieces = chunks.count(IDBKeyRange.bound([RESERVE_SLOT, 0], [RESERVE_SLOT, END]));
    const found = journal.getAllKeys() as IDBRequest<IDBValidKey[]>;
    await resultOf(found).catch(() => taking);
    const succession = successionTo(found.result as RowKey[]);
    this.#succeed(succession);
    // Most rows of a store that was opened often are fences, and values take longer than keys.
    const parts = succession.parts.map(
      ([from, to]) => journal.getAll(IDBKeyRange.bound([from, 0], [to, END])) as IDBRequest<Uint8Array[]>,
    );
    await Promise.all(parts.map(resultOf)).catch(() => taking);
    this.#pieces = pieces.result;
    const names = wanted(parts.flatMap(({ result }) => result.filter((row) => row.length > 0)));
    const requests = names.map((name) => getChunk(chunks, name));
    ahead?.((name) => {
      const request = getChunk(chunks, name);
      return resultOf(request).then(() => chunkOf(request));
    });
    this.#addFences(journal);
    transaction.commit?.();
    const isRead = await Promise.all(requests.map(resultOf)).then(
      () => true,
      () => false,
    );
    // Later calls wait for the rows. But what was read in their transaction is known already.
    if (!isRead || this.#last === undefined) await taking;
    return isRead ? requests.map(chunkOf) : this.read(names);
  }

  async rows(): Promise<Uint8Array[]> {
    return this.#attempt(async (database) => {
      const transaction = database.transaction('journal', 'readonly');
      const journal = transaction.objectStore('journal');
      const rows = journal.getAll() as IDBRequest<Uint8Array[]>;
      const last = journal.openKeyCursor(null, 'prev');
      await complete(transaction);
      if (this.#isLater(last)) throw taken();
      return rows.result.filter((row) => row.length > 0);
    });
  }

  async read(names: readonly ChunkName[]): Promise<FoundChunk[]> {
    let isAgain = false;
    const call = async (database: IDBDatabase): Promise<FoundChunk[]> => {
      const transaction = database.transaction(['chunks', 'journal'], 'readonly');
      const chunks = transaction.objectStore('chunks');
      const requests = names.map((name) => getChunk(chunks, name));
      // Once another holder has the store, the chunks may be that holder's.
      const last = transaction.objectStore('journal').openKeyCursor(null, 'prev');
      await answered(transaction, last);
      if (this.#isLater(last)) throw taken();
      const failed = requests.find(({ error }) => error !== null && LOST.includes(nameOf(error)));
      if (failed !== undefined && !isAgain) {
        // It may be the connection that failed, so it is made again.
        isAgain = true;
        throw failed.error;
      }
      return requests.map(chunkOf);
    };
    if (this.#isTaking && this.#database !== undefined) {
      // The browser runs this transaction after the one of the takeover. So it can be sent before that one is answered.
      const [early, taking] = await Promise.allSettled([call(unwrap(this.#database)), this.#taking]);
      if (early.status === 'fulfilled' && taking.status === 'fulfilled') return early.value;
    }
    return this.#attempt(call);
  }

  async commit(commit: Commit): Promise<void> {
    const bytes = commit.puts.reduce((sum, put) => sum + put.bytes.length, commit.row.length);
    const isDoubtful = bytes > SHORT_BYTES && (await this.#isBeyond(bytes));
    if (isDoubtful && performance.now() < this.#askFrom) {
      throw new SlotError('full', 'The browser refused this much a moment ago.');
    }
    let isSent = false;
    try {
      await this.#attempt(async (database) => {
        if (isSent && (await this.#isIn(database))) return;
        isSent = true;
        await complete(this.#send(database, commit));
      });
    } catch (error) {
      if (isFull(error)) await this.#learn(bytes);
      throw error;
    }
    if (isDoubtful) this.#bytesMax = Number.POSITIVE_INFINITY;
    this.#next++;
    this.#fences = [];
    if (commit.folds) this.#earlier = [];
  }

  async freeBytes(): Promise<number | undefined> {
    const origin = await originStorage();
    if (origin === undefined) return undefined;
    const { quotaBytes, usageBytes } = origin;
    if (usageBytes >= this.#bytesMax) this.#bytesMax = Number.POSITIVE_INFINITY;
    return Math.max(0, Math.min(quotaBytes, this.#bytesMax) - usageBytes);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const database = await this.#connecting?.catch(() => undefined);
    database?.close();
  }

  /**
   * Whether the last row of the journal is a later holder's. Asked when the cursor was answered, and not before: meanwhile, a commit may
   * have added this holder's first rows.
   */
  #isLater({ result: cursor }: IDBRequest<IDBCursor | null>): boolean {
    const [epoch] = (cursor?.key ?? [0]) as number[];
    return (epoch as number) >= this.#epoch + (this.#fences.length === 0 ? 1 : 0);
  }

  #succeed({ last, epoch, fences, earlier, outdated }: Succession): void {
    this.#last = last;
    this.#epoch = epoch;
    this.#next = 1;
    this.#fences = fences;
    this.#earlier = earlier;
    this.#outdated = outdated;
  }

  #addFences(journal: IDBObjectStore): void {
    if (this.#fences.length === 0) return;
    for (const key of this.#fences) journal.add(new Uint8Array(0), key);
    for (const key of this.#outdated) journal.delete(key);
  }

  /** Records that a commit of `bytes` bytes was refused. */
  async #learn(bytes: number): Promise<void> {
    const origin = await originStorage();
    if (origin !== undefined) this.#bytesMax = Math.min(this.#bytesMax, origin.usageBytes + bytes);
    this.#askFrom = performance.now() + ASK_MS;
  }

  /** Whether the browser would refuse `bytes` bytes if it has no more room by now. A refused commit leaves something in its log. */
  async #isBeyond(bytes: number): Promise<boolean> {
    if (this.#bytesMax === Number.POSITIVE_INFINITY) return false;
    const origin = await originStorage();
    return origin !== undefined && origin.usageBytes + bytes >= this.#bytesMax;
  }

  async #completeReserve(): Promise<boolean> {
    try {
      for (let piece = RESERVE_BYTES.length - 1; piece >= 0; piece--) {
        await this.#attempt((database) => setAside(database, piece));
      }
      return true;
    } catch (error) {
      if (isFull(error)) return false;
      throw error;
    }
  }

  async #giveReserve(pieces: number): Promise<boolean> {
    return this.#attempt(async (database) => {
      const transaction = database.transaction('chunks', 'readwrite', { durability: 'relaxed' });
      const chunks = transaction.objectStore('chunks');
      const there = chunks.getAllKeys(IDBKeyRange.bound([RESERVE_SLOT, 0], [RESERVE_SLOT, pieces - 1]), 1);
      there.onsuccess = () => {
        for (const key of there.result) chunks.delete(key);
      };
      await complete(transaction);
      return there.result.length > 0;
    });
  }

  #send(database: IDBDatabase, { row, drops, puts, folds, isStrict }: Commit): IDBTransaction {
    const names = drops.length + puts.length > 0 ? ['journal', 'chunks'] : 'journal';
    const values = puts.map(({ bytes }) => stored(bytes));
    const durability =
      isStrict || (values.some(({ length }) => length === CHUNK_BYTES) && hasFiles()) ? 'strict' : 'relaxed';
    const transaction = database.transaction(names, 'readwrite', { durability });
    const journal = transaction.objectStore('journal');
    this.#addFences(journal);
    journal.add(row, [this.#epoch, this.#next]);
    if (names !== 'journal') {
      const chunks = transaction.objectStore('chunks');
      for (const { slot, index } of drops) chunks.delete(IDBKeyRange.bound([slot, index], [slot, END]));
      for (const [i, { slot, index }] of puts.entries()) chunks.put(values[i], [slot, index]);
    }
    if (folds) {
      for (const [epoch, fence] of this.#earlier)
        journal.delete(IDBKeyRange.bound([epoch, 0], [epoch, fence], false, true));
      journal.delete(IDBKeyRange.bound([this.#epoch, 0], [this.#epoch, this.#next], false, true));
    }
    // Not every implementation has `commit`; without it the transaction commits once its requests have been answered.
    transaction.commit?.();
    return transaction;
  }

  /** Whether the row that was sent last is in the journal; throws when that row is another holder's. */
  async #isIn(database: IDBDatabase): Promise<boolean> {
    const transaction = database.transaction('journal', 'readonly');
    const journal = transaction.objectStore('journal');
    const before = journal.count(this.#fences.length > 0 ? this.#last : [this.#epoch, this.#next - 1]);
    const row = journal.get([this.#epoch, this.#next]) as IDBRequest<Uint8Array | undefined>;
    await complete(transaction);
    if (row.result !== undefined && row.result.length > 0) return true;
    if (row.result !== undefined || before.result === 0) throw taken();
    return false;
  }

  /** Runs transactions; on a new connection if the browser has ended the old one. */
  async #attempt<T>(call: (database: IDBDatabase) => Promise<T>): Promise<T> {
    await this.#taking;
    for (let attempt = 1; ; attempt++) {
      const isFresh = this.#database === undefined;
      const database = this.#database ?? (await this.#connect(false));
      try {
        // Meanwhile the database may have been deleted, and another one of that name made.
        if (isFresh) await this.#isIn(unwrap(database));
        return await call(unwrap(database));
      } catch (error) {
        const isLost = this.#database !== database || LOST.includes(nameOf(error));
        if (!isLost || error instanceof SlotError || attempt === ATTEMPTS_MAX) throw slotError(error);
        database.close();
        this.#drop(database);
      }
    }
  }

  async #connect(create: boolean): Promise<StoreDatabase> {
    if (this.#isClosed) throw new SlotError('closed', 'The connection was closed.');
    if (this.#connecting === undefined) {
      const onLost = (): void => {
        // The end of an old connection may be reported late.
        if (this.#connecting === connecting) this.#drop(this.#database);
      };
      const connecting = openDatabase(this.#name, { create, onLost });
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

  #drop(database: StoreDatabase | undefined): void {
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

/** Asks for a chunk. If the browser cannot read it, because its file is gone, the rest of the transaction goes on. */
function getChunk(chunks: IDBObjectStore, { slot, index }: ChunkName): IDBRequest<Uint8Array<ArrayBuffer> | undefined> {
  const request = chunks.get([slot, index]);
  request.addEventListener('error', (event) => event.preventDefault());
  return request;
}

/** The chunk that was stored, or why it could not be read. */
function chunkOf({ result, error }: IDBRequest<Uint8Array<ArrayBuffer> | undefined>): FoundChunk {
  if (error) return new SlotError('io', error.message, { cause: error });
  return result?.length === CHUNK_BYTES ? scrambled(result) : result;
}

/** A chunk as it is stored. */
function stored(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const used = trimmed(bytes);
  const isWhole = used.length >= (hasFiles() ? FILE_BYTES_MIN : CHUNK_BYTES);
  // For a view of a part of a buffer, the whole buffer would be stored.
  return isWhole ? scrambled(bytes.slice()) : used.slice();
}

/** Turns whole words into noise, and back, in place. The noise: G. Marsaglia, "Xorshift RNGs", 2003. */
function scrambled(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  let noise = 0x9e37_79b9;
  // A loop without calls: while this code is not compiled yet, `forEach` takes milliseconds for a chunk.
  for (let i = 0; i < words.length; i++) {
    noise ^= noise << 13;
    noise ^= noise >>> 17;
    noise ^= noise << 5;
    words[i] = (words[i] as number) ^ noise;
  }
  return bytes;
}

/** Whether this is Chromium: no other engine has `userAgentData`. */
function hasFiles(): boolean {
  return globalThis.navigator !== undefined && 'userAgentData' in navigator;
}

/** Puts a piece of the reserve, if it is not there. */
async function setAside(database: IDBDatabase, piece: number): Promise<void> {
  const transaction = database.transaction('chunks', 'readwrite', { durability: 'relaxed' });
  const chunks = transaction.objectStore('chunks');
  const key = [RESERVE_SLOT, piece];
  const there = chunks.count(key);
  let refusal: unknown;
  there.onsuccess = () => {
    if (there.result > 0) return;
    const zeros = new Uint8Array(RESERVE_BYTES[piece] ?? 0);
    try {
      // A private window of WebKit takes no Blob. Where values are compressed, only noise takes room.
      chunks.put(hasFiles() ? new Blob([zeros]) : scrambled(zeros), key);
    } catch (error) {
      refusal = error;
      transaction.abort();
    }
  };
  await complete(transaction).catch((error: unknown) => {
    throw refusal ?? error;
  });
}

/** The errors of a transaction whose connection is gone. */
const LOST = ['InvalidStateError', 'AbortError', 'UnknownError', 'TransactionInactiveError'];

function complete(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new DOMException('It was aborted.', 'AbortError'));
  });
}

/**
 * Resolves when the last request of a read-only transaction was answered, and so all requests before it. The event `complete` comes
 * a round trip between processes later.
 */
function answered(transaction: IDBTransaction, last: IDBRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    last.onsuccess = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new DOMException('It was aborted.', 'AbortError'));
  });
}

function isFull(error: unknown): boolean {
  return error instanceof SlotError && error.kind === 'full';
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
