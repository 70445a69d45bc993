// Stores in IndexedDB whose transactions the browser refuses for lack of room: at every possible point, once or for a while. The
// session continues: nothing acknowledged is lost, nothing refused shows, reads are answered, and later there is room again.

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Key, open, type Store } from '../../js/src/index.ts';
import { randomFrom, tools, wasm } from './support/engine.ts';
import { FakeLocks } from './support/fake-opfs.ts';

/** Turns of the event loop within which the transactions of a timer have ended. */
const TURNS = 50;

type Random = (below: number) => number;

/** Decides for each transaction whether there is room; counts the transactions from the first one that writes. */
let refuses: (number: number, bytes: number) => boolean;
let transactions: number;
let refused: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true });
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
  refuses = () => false;
  transactions = 0;
  refused = 0;
  const bytes = new WeakMap<IDBTransaction, number>();
  for (const method of ['add', 'put'] as const) {
    const original = IDBObjectStore.prototype[method];
    vi.spyOn(IDBObjectStore.prototype, method).mockImplementation(function (this: IDBObjectStore, value, key) {
      const { length } = value as Uint8Array;
      bytes.set(this.transaction, (bytes.get(this.transaction) ?? 0) + length);
      return original.call(this, value, key);
    });
  }
  const { commit } = IDBTransaction.prototype;
  vi.spyOn(IDBTransaction.prototype, 'commit').mockImplementation(function (this: IDBTransaction) {
    if (!refuses(transactions++, bytes.get(this) ?? 0)) return commit.call(this);
    refused++;
    this.abort();
    Object.defineProperty(this, 'error', { value: new DOMException('Full.', 'QuotaExceededError') });
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** A store and the entries that must be in it. */
class Modelled {
  readonly model = new Map<number, string>();
  readonly db: Store<Key, unknown>;

  constructor(db: Store<Key, unknown>) {
    this.db = db;
  }

  static async open(): Promise<Modelled> {
    return new Modelled(await open('store', { storage: 'indexeddb', wasm, memoryBytes: 1024 * 1024 }));
  }

  /** Makes several calls at once. Acknowledged writes are in the model from then on; refused ones must be refused for want of room. */
  async turn(random: Random): Promise<void> {
    const doing: Promise<() => void>[] = [];
    for (let left = random(4); left >= 0; left--) doing.push(this.#write(random));
    for (const result of await Promise.allSettled(doing)) {
      if (result.status === 'fulfilled') result.value();
      else expect(result.reason).toMatchObject({ code: 'VARVE_STORAGE_FULL' });
    }
    const key = random(60);
    expect(await this.db.get(key)).toBe(this.model.get(key));
  }

  async compare(): Promise<void> {
    const found: [Key, unknown][] = [];
    for await (const entry of this.db.entries()) found.push(entry);
    expect(found).toEqual([...this.model].sort(([a], [b]) => a - b));
  }

  async #write(random: Random): Promise<() => void> {
    const [what, key] = [random(10), random(60)];
    const durability = random(3) === 0 ? 'strict' : 'relaxed';
    if (what < 7) {
      const value = String.fromCharCode(97 + random(26)).repeat(1 + random(random(8) === 0 ? 40_000 : 300));
      await this.db.set(key, value, { durability });
      return () => this.model.set(key, value);
    }
    if (what < 9) {
      await this.db.delete(key, { durability });
      return () => this.model.delete(key);
    }
    await this.db.deleteRange({ gte: key, lt: key + 5 }, { durability });
    return () => {
      for (let one = key; one < key + 5; one++) this.model.delete(one);
    };
  }
}

/** A short history with everything in it: groups, flushes, merges, a pause in which timers write. */
async function history(store: Modelled): Promise<void> {
  const random = randomFrom(5);
  for (let round = 0; round < 14; round++) {
    await store.turn(random);
    if (round === 5 || round === 11) await store.db.compact().catch(isFull);
    if (round === 8) await pause(120);
  }
}

/** Lets the store's timers for so many milliseconds fire, and the transactions that they begin end. */
async function pause(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function isFull(error: unknown): void {
  expect(error).toMatchObject({ code: 'VARVE_STORAGE_FULL' });
}

test.each([1, 3])('transactions refused at every possible point, %i in a row', { timeout: 300_000 }, async (inARow) => {
  let last = Number.POSITIVE_INFINITY;
  for (let at = 0; at < last; at++) {
    vi.stubGlobal('indexedDB', new IDBFactory());
    const store = await Modelled.open();
    const first = transactions;
    refuses = (number) => number >= first + at && number < first + at + inARow;
    await history(store);
    await store.compare();
    await store.turn(randomFrom(at));
    last = Math.min(last, transactions - first);
    refuses = () => false;
    await store.turn(randomFrom(at + 1));
    await store.compare();
    expect((await store.db.check({ tools })).problems).toEqual([]);
    await store.db.close();
    const again = new Modelled(await open('store', { wasm }));
    for (const [key, value] of store.model) again.model.set(key, value);
    await again.compare();
    await again.db.close();
  }
  expect(refused).toBeGreaterThan(15);
});

/** All entries, or the code of an error. */
async function scanOf(db: Store<Key, unknown>): Promise<unknown> {
  const found = new Map<Key, unknown>();
  try {
    for await (const [key, value] of db.entries()) found.set(key, value);
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return found;
}

test.each([1, 2, 3, 4])('room that comes and goes (seed %i)', { timeout: 120_000 }, async (seed) => {
  const random = randomFrom(seed);
  const store = await Modelled.open();
  let room = Number.POSITIVE_INFINITY;
  refuses = (_, bytes) => bytes > room;
  for (let round = 0; round < 60; round++) {
    if (random(6) === 0) room = [Number.POSITIVE_INFINITY, 0, 200, 3000, 100_000][random(5)] as number;
    const snapshot = random(5) === 0 ? store.db.snapshot() : undefined;
    const [key, then] = [random(60), new Map(store.model)];
    const scanned = scanOf(store.db);
    await store.turn(random);
    // The scan, whose batches are in the frames of the writes, saw the store as it was, or has ended.
    expect([then, 'VARVE_INVALID_ARGUMENT', 'VARVE_RETRY']).toContainEqual(await scanned);
    if (snapshot !== undefined) {
      // The snapshot is unchanged, or it has ended.
      const found = await snapshot.get(key).catch((error) => error.code);
      expect(found === then.get(key) || ['VARVE_INVALID_ARGUMENT', 'VARVE_RETRY'].includes(String(found))).toBe(true);
      await snapshot.close();
    }
    if (random(20) === 0) await store.db.compact().catch(isFull);
    if (random(10) === 0) await store.compare();
  }
  room = Number.POSITIVE_INFINITY;
  await store.turn(random);
  await store.compare();
  expect((await store.db.stats()).snapshots).toBe(0);
  await store.db.close();
  expect(refused).toBeGreaterThan(5);
});

test('with no room at all sets and deletes are refused, and reads, scans and snapshots continue', async () => {
  const { db } = await Modelled.open();
  await db.setMany(Array.from({ length: 3000 }, (_, i) => [i, 'x'.repeat(100)] as const));
  const snapshot = db.snapshot();
  const scan = db.keys();
  const keys: unknown[] = [];
  // The first batch ends in the middle.
  for (let i = 0; i < 1200; i++) keys.push((await scan.next()).value);
  refuses = () => true;
  const rest = Array.from({ length: 1200 }, () => scan.next());
  // The next batch is in the same frame.
  await expect(db.set(0, 'refused')).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  for (const { value } of await Promise.all(rest)) keys.push(value);
  await expect(db.transaction(async (tx) => tx.set(1, 'refused'))).rejects.toMatchObject({
    code: 'VARVE_STORAGE_FULL',
  });
  const [write, read, entries] = await Promise.allSettled([db.delete(7), db.get(7), db.count()]);
  expect([write.status, read, entries]).toMatchObject(['rejected', { value: 'x'.repeat(100) }, { value: 3000 }]);
  for await (const key of scan) keys.push(key);
  expect(keys.length).toBe(3000);
  // A delete that was tried in the engine's reserve, and was undone, may have ended the snapshot.
  const seen = (): Promise<unknown> => snapshot.get(0).catch((error) => error.code);
  expect(['x'.repeat(100), 'VARVE_RETRY']).toContain(await seen());
  const before = transactions;
  await pause(600);
  // The store writes nothing for its own purposes while there is no room.
  expect(transactions - before).toBe(0);
  refuses = () => false;
  await db.set(0, 'taken');
  expect(await db.get(0)).toBe('taken');
  expect(['x'.repeat(100), 'VARVE_RETRY']).toContain(await seen());
  await db.close();
});

test('a store that is closed while there is no room keeps what was acknowledged', async () => {
  const { db } = await Modelled.open();
  await db.set('kept', 1);
  refuses = () => true;
  await db.close();
  refuses = () => false;
  const again = await open('store', { wasm });
  refuses = () => true;
  await expect(again.set('refused', 2)).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  await again.close();
  refuses = () => false;
  const third = await open('store', { wasm });
  expect([await third.get('kept'), await third.has('refused')]).toEqual([1, false]);
  await third.close();
});

test('a store without a log, which has what was acknowledged in memory alone, ends where it cannot go back', async () => {
  const db = await open('store', { storage: 'indexeddb', wasm, durability: 'memory', memoryBytes: 1024 * 1024 });
  await db.set('in memory', 1);
  refuses = () => true;
  await expect(db.compact()).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  await expect(db.get('in memory')).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
});
