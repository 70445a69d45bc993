// Chunks that an asynchronous storage cannot read, while it can read the others. Chromium keeps long values of IndexedDB in files, and
// cleaners, virus scanners and crashes remove some of them ("Data lost due to missing file").

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { openDB } from 'idb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { check, open, repair, type Store } from '../../js/src/index.ts';
import type { ChunkName, FoundChunk } from '../../js/src/storage/buffered/chunk-store.ts';
import { BufferedDevice } from '../../js/src/storage/buffered/device.ts';
import { SlotError } from '../../js/src/storage/device.ts';
import { randomFrom, tools, wasm } from './support/engine.ts';
import { ChunkState, FakeChunks } from './support/fake-chunks.ts';
import { FakeLocks } from './support/fake-opfs.ts';

const ENTRIES = 300;
const KIB = 1024;

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Bytes that do not compress. */
function entryOf(number: number): Uint8Array {
  const random = randomFrom(number + 1);
  return Uint8Array.from({ length: 4000 }, () => random(256));
}

/** A closed store that is one table. */
async function fill(): Promise<void> {
  const db = await open<number, Uint8Array>('notes', { storage: 'indexeddb', wasm });
  await db.setMany(Array.from({ length: ENTRIES }, (_, i) => [i, entryOf(i)] as const));
  await db.compact();
  await db.close();
}

/** The chunks of the longest slot. */
async function chunksOfTable(): Promise<ChunkName[]> {
  const database = await openDB('varve:notes');
  const keys = await database.getAllKeys('chunks');
  database.close();
  const slots = new Map<number, ChunkName[]>();
  for (const key of keys) {
    const [slot = 0, index = 0] = key as number[];
    // Reserved room is not a chunk of a slot.
    if (slot < 1e9) slots.set(slot, [...(slots.get(slot) ?? []), { slot, index }]);
  }
  return [...slots.values()].sort((a, b) => b.length - a.length)[0] as ChunkName[];
}

/** From now on `get` fails for these chunks, as a request does: unless its event is prevented, the transaction is aborted. */
function makeUnreadable(isUnreadable: (name: ChunkName) => boolean, error = 'NotReadableError'): void {
  const { get } = IDBObjectStore.prototype;
  vi.spyOn(IDBObjectStore.prototype, 'get').mockImplementation(function (this: IDBObjectStore, key) {
    const [slot = 0, index = 0] = key as number[];
    if (this.name !== 'chunks' || !isUnreadable({ slot, index })) return get.call(this, key);
    return failing(this, error);
  });
}

function failing(store: IDBObjectStore, error: string): IDBRequest {
  const operation = (): never => {
    throw new DOMException('Data lost due to missing file.', error);
  };
  const transaction = store.transaction as IDBTransaction & { _execRequestAsync(request: unknown): IDBRequest };
  return transaction._execRequestAsync({ source: store, operation });
}

/** Reads every entry; returns the keys that could not be read. */
async function unread(db: Store<number, Uint8Array>): Promise<number[]> {
  const failed: number[] = [];
  for (let number = 0; number < ENTRIES; number++) {
    try {
      expect(await db.get(number)).toEqual(entryOf(number));
    } catch (error) {
      expect(error).toMatchObject({ code: 'VARVE_IO' });
      failed.push(number);
    }
  }
  return failed;
}

/** Repairs, and reads all entries of the new store. Returns the keys of those that are missing. */
async function repaired(): Promise<number[]> {
  const { name, lost } = await repair('notes', { tools });
  expect(lost.length).toBeGreaterThan(0);
  const db = await open<number, Uint8Array>(name, { wasm });
  const kept = new Set(await db.keys().toArray());
  for (const key of kept) expect(await db.get(key)).toEqual(entryOf(key));
  expect((await db.check({ tools })).ok).toBe(true);
  await db.close();
  return Array.from({ length: ENTRIES }, (_, i) => i).filter((key) => !kept.has(key));
}

// Story: one such file is gone. Every read that touched it ended the store in all tabs, and `check` and `repair` failed, too.
test.each(['NotReadableError', 'UnknownError'])(
  'one chunk that IndexedDB cannot read (%s) costs the reads of its own keys, and a repair saves the others',
  { timeout: 60_000 },
  async (error) => {
    await fill();
    const chunks = await chunksOfTable();
    const victim = chunks[Math.floor(chunks.length / 2)] as ChunkName;
    makeUnreadable(({ slot, index }) => slot === victim.slot && index === victim.index, error);
    const db = await open<number, Uint8Array>('notes', { wasm });
    const failed = await unread(db);
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThan(40);
    // Each time; together with others, too; and the store takes writes.
    expect(await unread(db)).toEqual(failed);
    const [first = 0] = failed;
    await expect(db.getMany([0, first, ENTRIES - 1])).rejects.toMatchObject({ code: 'VARVE_IO' });
    await db.set(ENTRIES, entryOf(ENTRIES));
    const { ok, problems } = await db.check({ tools });
    expect([ok, problems.length > 0]).toEqual([false, true]);
    await db.delete(ENTRIES);
    await db.close();
    expect((await check('notes', { tools })).ok).toBe(false);
    expect(await repaired()).toEqual(failed);
    // The file is there again: nothing was written over it.
    vi.restoreAllMocks();
    const again = await open<number, Uint8Array>('notes', { wasm });
    expect(await unread(again)).toEqual([]);
    await again.close();
  },
);

/** From now on this byte of a chunk reads with all its bits changed. */
function damage(victim: ChunkName, at: number): void {
  const { get } = IDBObjectStore.prototype;
  vi.spyOn(IDBObjectStore.prototype, 'get').mockImplementation(function (this: IDBObjectStore, key) {
    const [slot, index] = key as number[];
    const request = get.call(this, key);
    if (this.name !== 'chunks' || slot !== victim.slot || index !== victim.index) return request;
    return new Proxy(request, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target);
        if (name !== 'result') return typeof value === 'function' ? value.bind(target) : value;
        const bytes = new Uint8Array(value as Uint8Array);
        bytes[at] = ~(bytes[at] ?? 0);
        return bytes;
      },
      set: (target, name, value) => Reflect.set(target, name, value, target),
    });
  });
}

// Story: the merge that needed the chunk failed, and the same merge was chosen again, so nothing was merged until a repair. The table
// must be noted as damaged, so that the others are merged around it.
test.each(['unreadable', 'damaged'])(
  'a chunk that is %s keeps no other table from being merged',
  { timeout: 60_000 },
  async (how) => {
    await fill();
    const chunks = await chunksOfTable();
    const victim = chunks[Math.floor(chunks.length / 2)] as ChunkName;
    if (how === 'damaged') damage(victim, 30_000);
    else makeUnreadable(({ slot, index }) => slot === victim.slot && index === victim.index);
    const db = await open<number, Uint8Array>('notes', { wasm, memoryBytes: 1 << 20 });
    for (let round = 0; round < 40; round++) {
      const keys = Array.from({ length: 60 }, (_, i) => (round * 7 + i * 5) % ENTRIES);
      await db.setMany(keys.map((key, i) => [key, entryOf(round + i)] as const));
    }
    const tables = async (): Promise<number> => (await db.stats()).levels[0]?.tables ?? 0;
    // Nearly forty, if nothing is merged.
    await expect.poll(tables, { timeout: 30_000 }).toBeLessThan(12);
    await db.close();
  },
);

// Such a request aborted the transaction of the takeover, so the store did not open in any way.
test('chunks that are read with the takeover and cannot be read keep nobody from a check and a repair', {
  timeout: 60_000,
}, async () => {
  await fill();
  const chunks = await chunksOfTable();
  const last = chunks.at(-1) as ChunkName;
  makeUnreadable(({ slot, index }) => index === 0 || (slot === last.slot && index === last.index));
  expect((await check('notes', { tools })).ok).toBe(false);
  expect((await repaired()).length).toBeLessThan(40);
});

test('a takeover goes through when a chunk that it reads cannot be read', async () => {
  await fill();
  const last = (await chunksOfTable()).at(-1) as ChunkName;
  makeUnreadable(({ slot, index }) => slot === last.slot && index === last.index);
  const opened = await open<number, Uint8Array>('notes', { wasm });
  await opened.set(ENTRIES, entryOf(ENTRIES));
  expect(await opened.get(ENTRIES)).toEqual(entryOf(ENTRIES));
  await opened.close();
});

test('a database that cannot be read at all ends the store, and is not repaired to zeros', async () => {
  await fill();
  const db = await open<number, Uint8Array>('notes', { wasm });
  makeUnreadable(() => true, 'UnknownError');
  vi.spyOn(IDBObjectStore.prototype, 'openKeyCursor').mockImplementation(function (this: IDBObjectStore) {
    return failing(this, 'UnknownError');
  });
  await expect(db.get(150)).rejects.toMatchObject({ code: 'VARVE_IO' });
  await expect(db.set(0, entryOf(1))).rejects.toThrow();
  await db.close().catch(() => undefined);
  await expect(repair('notes', { tools })).rejects.toMatchObject({ code: 'VARVE_IO' });
  vi.restoreAllMocks();
  const again = await open<number, Uint8Array>('notes', { wasm });
  expect(await unread(again)).toEqual([]);
  await again.close();
});

/** Chunks of which some cannot be read. */
class Unreadable extends FakeChunks {
  isUnreadable: (name: ChunkName) => boolean = () => false;

  override async read(names: readonly ChunkName[]): Promise<FoundChunk[]> {
    const found = await super.read(names);
    return found.map((bytes, i) =>
      this.isUnreadable(names[i] as ChunkName) ? new SlotError('io', 'Its file is gone.') : bytes,
    );
  }
}

test('bytes written over a chunk that cannot be read are kept, and make it whole again', async () => {
  const state = new ChunkState();
  const before = await BufferedDevice.open(new FakeChunks(state));
  before.write(0, new Uint8Array(300 * KIB).fill(1), 4 * KIB);
  await before.closeAll();
  const chunks = new Unreadable(state);
  const device = await BufferedDevice.open(chunks);
  const bytes = new Uint8Array(100);
  const read = (at: number): Promise<number> => device.resident(() => device.read(0, bytes, at));
  chunks.isUnreadable = ({ index }) => index === 2;
  await expect(read(80 * KIB)).rejects.toMatchObject({ kind: 'io' });
  expect([await read(10 * KIB), await read(200 * KIB)]).toEqual([100, 100]);
  // Over the beginning of the chunk: the read needs one more byte, or not.
  device.write(0, new Uint8Array(20 * KIB).fill(2), 68 * KIB);
  await device.committed();
  expect([await read(70 * KIB), bytes[99]]).toEqual([100, 2]);
  await expect(read(88 * KIB - 99)).rejects.toMatchObject({ kind: 'io' });
  // The read asks again each time.
  chunks.isUnreadable = () => false;
  expect([await read(88 * KIB - 99), bytes[98], bytes[99]]).toEqual([100, 2, 1]);
  await device.closeAll();

  const later = new Unreadable(state);
  later.isUnreadable = ({ index }) => index === 2;
  const again = await BufferedDevice.open(later);
  again.write(0, new Uint8Array(64 * KIB).fill(3), 68 * KIB);
  await again.closeAll();
  const whole = await BufferedDevice.open(new FakeChunks(state));
  const all = new Uint8Array(128 * KIB);
  await whole.resident(() => whole.read(0, all, 36 * KIB));
  expect([all[0], all[32 * KIB], all[96 * KIB - 1], all[96 * KIB]]).toEqual([1, 3, 3, 1]);
  await whole.closeAll();
});
