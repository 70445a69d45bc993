// Stores in IndexedDB: transactions, the fence, lost connections, refusals; which storage a name gets; canaries.

import 'fake-indexeddb/auto';
import { forceCloseDatabase, IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { deleteStore, listStores, open } from '../../js/src/index.ts';
import { IndexedDbChunks, openIndexedDb } from '../../js/src/storage/indexeddb/chunk-store.ts';
import * as sync from '../../js/src/synchronous.ts';
import { wasm } from './support/engine.ts';
import { FakeLocks, FakeOpfs, stubOpfs } from './support/fake-opfs.ts';

let opfs: FakeOpfs;

beforeEach(() => {
  opfs = new FakeOpfs();
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** From now on the origin private file system exists. */
function withOpfs(): void {
  stubOpfs(opfs);
}

/** Its directories are visible, but a synchronous handle is unavailable, as in a service worker. */
function withoutHandles(): void {
  vi.stubGlobal('FileSystemFileHandle', class {});
}

/** The connections to databases that were opened since then. */
function connections(): IDBDatabase[] {
  const found: IDBDatabase[] = [];
  const { open } = indexedDB;
  vi.spyOn(indexedDB, 'open').mockImplementation(function (this: IDBFactory, ...args: [string, number?]) {
    const request = open.apply(indexedDB, args);
    request.addEventListener('success', () => found.push(request.result));
    return request;
  } as typeof open);
  return found;
}

const bytes = (...values: number[]): Uint8Array<ArrayBuffer> => Uint8Array.from(values);

async function firstBytes(name: string): Promise<Uint8Array> {
  const device = await openIndexedDb(name);
  const into = new Uint8Array(3);
  await device.resident(() => device.read(0, into, 0));
  await device.closeAll();
  return into;
}

test('committed writes are there for the next opening', async () => {
  const device = await openIndexedDb('one');
  device.write(0, bytes(1, 2, 3), 0);
  device.write(1, new Uint8Array(200 * 1024).fill(9), 4096);
  device.flush(1);
  await device.committed();
  await device.closeAll();
  const again = await openIndexedDb('one');
  const into = new Uint8Array(4);
  await again.resident(() => again.read(1, into, 150 * 1024));
  expect([again.size(0), again.size(1), [...into]]).toEqual([3, 204 * 1024, [9, 9, 9, 9]]);
  await again.closeAll();
  expect(await firstBytes('one')).toEqual(bytes(1, 2, 3));
});

test('commits ask for the durability that they need, and are one transaction each', async () => {
  const device = await openIndexedDb('durability');
  await device.committed();
  const asked: unknown[] = [];
  const { transaction } = IDBDatabase.prototype;
  vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (this: IDBDatabase, ...args) {
    asked.push([args[1], args[2]?.durability]);
    return transaction.apply(this, args);
  });
  for (let i = 0; i < 10; i++) device.write(0, bytes(i), i);
  await device.committed();
  device.write(0, bytes(1), 0);
  device.flush(0);
  await device.committed();
  expect(asked).toEqual([
    ['readwrite', 'relaxed'],
    ['readwrite', 'strict'],
  ]);
  await device.closeAll();
});

test('a holder whose store was taken over changes and reads nothing any more', async () => {
  const zombie = await openIndexedDb('zombie');
  zombie.write(0, bytes(1, 1, 1), 0);
  zombie.write(1, new Uint8Array(100_000).fill(1), 4096);
  await zombie.committed();
  const heir = await openIndexedDb('zombie');
  // The heir has not written anything yet: its opening alone is the fence.
  zombie.write(0, bytes(2, 2, 2), 0);
  zombie.write(2, new Uint8Array(100_000).fill(2), 4096);
  await expect(zombie.committed()).rejects.toMatchObject({ kind: 'closed' });
  const into = new Uint8Array(3);
  await heir.resident(() => heir.read(0, into, 0));
  expect(into).toEqual(bytes(1, 1, 1));
  expect(heir.size(2)).toBe(0);
  heir.write(0, bytes(3, 3, 3), 0);
  await heir.closeAll();
  await zombie.closeAll();
  expect(await firstBytes('zombie')).toEqual(bytes(3, 3, 3));
});

test('a reader whose store was taken over gets an error, and no bytes of the next holder', async () => {
  const first = await openIndexedDb('reader');
  first.write(1, new Uint8Array(300_000).fill(1), 4096);
  await first.closeAll();
  const zombie = await openIndexedDb('reader');
  const heir = await openIndexedDb('reader');
  const reading = zombie.resident(() => zombie.read(1, new Uint8Array(10), 50_000));
  await expect(reading).rejects.toMatchObject({ kind: 'closed' });
  await Promise.all([zombie.closeAll(), heir.closeAll()]);
});

// The read was sent while the rows that keep others out were still to be added, and was answered behind the commit that added them.
// It took them for those of another holder: "Another tab or worker has taken the store over."
test('a read behind the first commit of a full store finds no later holder', async () => {
  const commit = { row: new Uint8Array(8), drops: [], puts: [], folds: false, isStrict: false };
  const before = new IndexedDbChunks('full');
  await before.takeOver(() => []);
  await before.commit(commit);
  await before.close();
  const { add } = IDBObjectStore.prototype;
  vi.spyOn(IDBObjectStore.prototype, 'add').mockImplementation(function (this: IDBObjectStore, value, key) {
    const { transaction } = this;
    const request = add.call(this, value, key);
    request.addEventListener('success', () => {
      transaction.abort();
      Object.defineProperty(transaction, 'error', { value: new DOMException('Full.', 'QuotaExceededError') });
    });
    return request;
  });
  const chunks = new IndexedDbChunks('full');
  await chunks.takeOver(() => []);
  vi.restoreAllMocks();
  expect(await Promise.all([chunks.commit(commit), chunks.read([{ slot: 0, index: 0 }])])).toEqual([
    undefined,
    [undefined],
  ]);
  expect(await chunks.rows()).toHaveLength(2);
  await chunks.close();
});

test.each([1, 2, 3])('the fence stays through %i more openings, foldings included', async (openings) => {
  const zombie = new IndexedDbChunks('fences');
  await zombie.takeOver(() => []);
  const commit = { row: new Uint8Array(8), drops: [], puts: [], folds: false, isStrict: false };
  await zombie.commit(commit);
  for (let i = 0; i < openings; i++) {
    const heir = new IndexedDbChunks('fences');
    await heir.takeOver(() => []);
    for (let n = 0; n < 5; n++) await heir.commit({ ...commit, folds: n === 3 });
    await heir.close();
  }
  await expect(zombie.commit(commit)).rejects.toMatchObject({ kind: 'closed' });
  await zombie.close();
});

test('committed data stays through any number of openings that write nothing', async () => {
  const commit = { row: bytes(7), drops: [], puts: [], folds: false, isStrict: false };
  let rows: Uint8Array[] = [];
  let reads = 0;
  for (let opening = 0; opening < 300; opening++) {
    const chunks = new IndexedDbChunks('read-only');
    await chunks.takeOver((found) => {
      rows = found;
      reads++;
      return [];
    });
    if (opening % 100 === 0) await chunks.commit(commit);
    await chunks.close();
  }
  expect([reads, rows]).toEqual([300, [bytes(7), bytes(7), bytes(7)]]);
  const database = await new Promise<IDBDatabase>((resolve) => {
    const opening = indexedDB.open('varve:read-only');
    opening.onsuccess = () => resolve(opening.result);
  });
  const counting = database.transaction('journal').objectStore('journal').count();
  await new Promise((resolve) => {
    counting.onsuccess = resolve;
  });
  database.close();
  // The fences of long ago are gone.
  expect(counting.result).toBeLessThan(270);
});

test('the first read is sent while a takeover is being committed, and answered also where that finds no room', async () => {
  const first = new IndexedDbChunks('early');
  await first.takeOver(() => []);
  const put = { slot: 0, index: 1, bytes: bytes(1, 2, 3) };
  await first.commit({ row: bytes(7), drops: [], puts: [put], folds: false, isStrict: false });
  await first.close();
  const begun: IDBTransactionMode[] = [];
  const { transaction } = IDBDatabase.prototype;
  vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (this: IDBDatabase, ...args) {
    const one = transaction.apply(this, args);
    begun.push(one.mode);
    return one;
  });
  for (const finds of ['room', 'no room']) {
    if (finds === 'no room') {
      vi.spyOn(IDBTransaction.prototype, 'commit').mockImplementationOnce(function (this: IDBTransaction) {
        Object.defineProperty(this, 'error', { value: new DOMException('Full.', 'QuotaExceededError') });
        this.abort();
      });
    }
    const chunks = new IndexedDbChunks('early');
    await chunks.takeOver(() => []);
    const reading = chunks.read([{ slot: 0, index: 1 }]);
    expect(begun.splice(0)).toEqual(['readwrite', 'readonly']);
    expect(await reading).toEqual([bytes(1, 2, 3)]);
    expect(begun).toEqual([]);
    await chunks.close();
  }
});

test('a connection that the browser ended is made again, and the caller does not notice', async () => {
  const opened = connections();
  const db = await open('lost', { storage: 'indexeddb', wasm });
  await db.set('a', 1);
  const before = opened.length;
  opened.at(-1)?.close();
  await db.set('b', 2);
  forceCloseDatabase(opened.at(-1) as never);
  expect(await db.getMany(['a', 'b'])).toEqual([1, 2]);
  await db.set('c', 3);
  expect(opened.length).toBeGreaterThan(before + 1);
  await db.close();
  const again = await open('lost', { storage: 'indexeddb', wasm });
  expect(await again.getMany(['a', 'b', 'c'])).toEqual([1, 2, 3]);
  await again.close();
});

test('a transaction that went through though its connection broke is not done twice', async () => {
  const chunks = new IndexedDbChunks('twice');
  await chunks.takeOver(() => []);
  const { transaction } = IDBDatabase.prototype;
  let isBroken = false;
  vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (this: IDBDatabase, ...args) {
    const made = transaction.apply(this, args);
    if (isBroken || args[1] !== 'readwrite') return made;
    isBroken = true;
    // It completes, but its sender gets an abort event.
    Object.defineProperty(made, 'oncomplete', {
      set: () => made.addEventListener('complete', () => made.onabort?.(new Event('abort'))),
    });
    return made;
  });
  const commit = { row: bytes(1, 2, 3, 4, 5, 6, 7, 8), drops: [], puts: [], folds: false, isStrict: false };
  await chunks.commit(commit);
  await chunks.commit({ ...commit, row: bytes(8, 7, 6, 5, 4, 3, 2, 1) });
  await chunks.close();
  await new IndexedDbChunks('twice').takeOver((rows) => {
    expect(rows.map((row) => row[0])).toEqual([1, 8]);
    return [];
  });
});

test('a deletion of the database does not wait for the store, which then reports that it is gone', async () => {
  const db = await open('deleted', { storage: 'indexeddb', wasm });
  await db.set('a', 1);
  await new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase('varve:deleted');
    request.onsuccess = resolve;
    request.onerror = reject;
  });
  await expect(db.set('b', 2)).rejects.toMatchObject({
    code: 'VARVE_LOCKED',
    message: expect.stringContaining('no database'),
  });
  const again = await open('deleted', { storage: 'indexeddb', wasm });
  expect([again.recovery.state, await again.count()]).toEqual(['new', 0]);
  await again.close();
});

test('a full quota refuses the write, keeps what was acknowledged, and the session continues when there is room again', async () => {
  const db = await open('quota', { storage: 'indexeddb', wasm });
  await db.set('kept', 1);
  vi.spyOn(IDBTransaction.prototype, 'commit').mockImplementation(function (this: IDBTransaction) {
    this.abort();
    Object.defineProperty(this, 'error', { value: new DOMException('Full.', 'QuotaExceededError') });
  });
  await expect(db.set('lost', 2)).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  expect(await db.getMany(['kept', 'lost'])).toEqual([1, undefined]);
  vi.restoreAllMocks();
  await db.set('later', 3);
  await db.close();
  const again = await open('quota', { storage: 'indexeddb', wasm });
  expect(await again.getMany(['kept', 'lost', 'later'])).toEqual([1, undefined, 3]);
  await again.close();
});

test('a browser that keeps no Blobs, as in private windows of WebKit, has a reserve all the same', async () => {
  const { put } = IDBObjectStore.prototype;
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (this: IDBObjectStore, value, key) {
    if (value instanceof Blob) throw new DOMException('It could not be cloned.', 'DataCloneError');
    return put.call(this, value, key);
  });
  const chunks = new IndexedDbChunks('private');
  await chunks.takeOver(() => []);
  expect(await chunks.reserve.complete()).toBe(true);
  expect(await chunks.reserve.give('any')).toBe(true);
  await chunks.close();
});

test('a reserve that cannot be put is reported with the reason, on the same connection', async () => {
  const chunks = new IndexedDbChunks('unputable');
  await chunks.takeOver(() => []);
  const opened = connections();
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
    throw new DOMException('It could not be cloned.', 'DataCloneError');
  });
  await expect(chunks.reserve.complete()).rejects.toMatchObject({ kind: 'io', message: 'It could not be cloned.' });
  expect(opened).toEqual([]);
  await chunks.close();
});

test('the ladder: OPFS, then IndexedDB, then memory, with the reasons', async () => {
  const names = async (): Promise<unknown> => {
    const db = await open('ladder', { wasm });
    const { storage } = db;
    await db.close();
    await deleteStore('ladder');
    return storage;
  };
  expect(await names()).toEqual({
    kind: 'indexeddb',
    reason: expect.stringContaining('no synchronous file handles'),
  });
  withOpfs();
  expect(await names()).toEqual({ kind: 'opfs' });
  vi.unstubAllGlobals();
  vi.stubGlobal('indexedDB', undefined);
  expect(await names()).toEqual({
    kind: 'memory',
    reason: expect.stringMatching(/no synchronous file handles.*no IndexedDB/),
  });
});

test('a store stays where it was made, and is opened nowhere else', async () => {
  const made = await open('stays', { wasm });
  await made.set('k', 'in IndexedDB');
  await made.close();
  withOpfs();
  const db = await open('stays', { wasm });
  expect(db.storage).toEqual({ kind: 'indexeddb', reason: expect.stringContaining('made in IndexedDB') });
  expect(await db.get('k')).toBe('in IndexedDB');
  await db.close();
  const other = await open('other', { wasm });
  expect(other.storage.kind).toBe('opfs');
  await other.close();
  withoutHandles();
  await expect(open('other', { wasm })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
  expect((await open('third', { wasm })).storage.kind).toBe('indexeddb');
});

test('a storage that is asked for is taken, or refused', async () => {
  await expect(open('forced', { wasm, storage: 'opfs' })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
  const memory = await open('forced', { wasm, storage: 'memory' });
  expect(memory.storage).toEqual({ kind: 'memory' });
  await memory.close();
  withOpfs();
  const db = await open('forced', { wasm, storage: 'indexeddb' });
  expect(db.storage).toEqual({ kind: 'indexeddb' });
  await db.close();
  vi.stubGlobal('indexedDB', undefined);
  await expect(open('forced', { wasm, storage: 'indexeddb' })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
});

test('names are those of all storages, and deleting removes a name from all of them', async () => {
  withOpfs();
  for (const [name, storage] of [
    ['a', 'opfs'],
    ['b', 'indexeddb'],
    ['both', 'opfs'],
    ['both', 'indexeddb'],
  ] as const) {
    await (await open(name, { wasm, storage })).close();
  }
  expect(await listStores()).toEqual(['a', 'b', 'both']);
  expect(await sync.listStores()).toEqual(['a', 'b', 'both']);
  for (const name of ['a', 'b', 'both']) expect(await deleteStore(name)).toBe(true);
  expect(await deleteStore('both')).toBe(false);
  expect(await listStores()).toEqual([]);
});

test('a second opener shares the store, and reads what the first wrote', async () => {
  const db = await open('shared', { wasm, storage: 'indexeddb' });
  const second = await open('shared', { wasm, storage: 'indexeddb' });
  await db.set('still', 1);
  expect(await second.get('still')).toBe(1);
  await expect(deleteStore('shared', { lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await db.close();
  await second.set('still', 2);
  expect(await second.get('still')).toBe(2);
  await second.close();
});

test('a synchronous store refuses a storage that answers later, and the error names open()', async () => {
  await (await open('later', { wasm, storage: 'indexeddb' })).close();
  const refusal = { code: 'VARVE_UNSUPPORTED', message: expect.stringContaining('use open()') };
  await expect(sync.open('later', { wasm })).rejects.toMatchObject(refusal);
  await expect(sync.open('later', { wasm, storage: 'indexeddb' })).rejects.toMatchObject(refusal);
});

test.each([
  ['opfs', 'indexeddb'],
  ['indexeddb', 'opfs'],
] as const)('a store is lost when %s was wiped, and new when its note in %s was wiped, too', async (kind, _) => {
  withOpfs();
  const state = async (): Promise<string> => {
    const db = await open('canary', { wasm, storage: kind });
    await db.close();
    return db.recovery.state;
  };
  const wipe = async (which: 'opfs' | 'indexeddb'): Promise<void> => {
    if (which === 'opfs') {
      opfs = new FakeOpfs();
      withOpfs();
    } else vi.stubGlobal('indexedDB', new IDBFactory());
  };
  expect([await state(), await state()]).toEqual(['new', 'clean']);
  await wipe(kind);
  expect([await state(), await state()]).toEqual(['lost', 'clean']);
  await wipe('opfs');
  await wipe('indexeddb');
  expect(await state()).toBe('new');
  await deleteStore('canary');
  expect(await state()).toBe('new');
});
