// A storage that refuses for a moment: the store in it is opened or not, but never replaced by an empty one.

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { deleteStore, listStores, open, repair } from '../../js/src/index.ts';
import * as sync from '../../js/src/synchronous.ts';
import { tools, wasm } from './support/engine.ts';
import { FakeFileHandle, FakeLocks, FakeOpfs } from './support/fake-opfs.ts';

let opfs: FakeOpfs;

const failing = (): DOMException => new DOMException('It failed for an unknown transient reason.', 'UnknownError');
const forbidden = (): DOMException => new DOMException('The operation is insecure.', 'SecurityError');
const REFUSED = { code: 'VARVE_UNAVAILABLE', message: expect.stringContaining('Try again') };

beforeEach(() => {
  opfs = new FakeOpfs();
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('FileSystemFileHandle', FakeFileHandle);
  vi.stubGlobal('navigator', { storage: opfs.storage, locks: new FakeLocks() });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Opens the store, sets a key if there is a value, and returns its storage, its state and the value before. */
async function visit(name: string, value?: string): Promise<[string, string, unknown]> {
  const db = await open<string, string>(name, { wasm });
  const before = await db.get('key');
  if (value !== undefined) await db.set('key', value);
  await db.close();
  return [db.storage.kind, db.recovery.state, before];
}

/** From now on IndexedDB refuses these calls. */
function refuseIndexedDb(error: () => DOMException, ...calls: ('databases' | 'open')[]): void {
  for (const call of calls) {
    vi.spyOn(indexedDB, call).mockImplementation((): never => {
      throw error();
    });
  }
}

const databases = async (): Promise<unknown[]> => (await indexedDB.databases()).map(({ name }) => name);

// Story: in one session `getDirectory()` rejects. An empty store in IndexedDB took the place of the store, and what was written to it was
// never seen again, because the store in OPFS is found first.
test('while OPFS fails, a store in it is neither replaced nor deleted nor left out of a list', async () => {
  expect(await visit('notes', 'v1')).toEqual(['opfs', 'new', undefined]);
  opfs.refusal = failing();
  await expect(visit('notes', 'v2')).rejects.toMatchObject(REFUSED);
  await expect(listStores()).rejects.toMatchObject(REFUSED);
  await expect(deleteStore('notes')).rejects.toMatchObject(REFUSED);
  await expect(sync.open('notes', { wasm })).rejects.toMatchObject(REFUSED);
  await expect(repair('notes', { tools })).rejects.toMatchObject({ code: 'VARVE_UNAVAILABLE' });
  // The refused deletion left the note, too.
  await expect(visit('notes', 'v2')).rejects.toMatchObject(REFUSED);
  expect(await databases()).toEqual(['varve']);
  // Other stores are not affected.
  expect(await visit('other', 'here')).toEqual(['indexeddb', 'new', undefined]);
  opfs.refusal = undefined;
  expect(await visit('notes')).toEqual(['opfs', 'clean', 'v1']);
  expect(await listStores()).toEqual(['notes', 'other']);
  expect(await deleteStore('notes')).toBe(true);
});

test('a refusal that is over in a moment is not noticed', async () => {
  await visit('notes', 'v1');
  opfs.refusal = failing();
  setTimeout(() => {
    opfs.refusal = undefined;
  }, 60);
  expect(await visit('notes')).toEqual(['opfs', 'clean', 'v1']);
});

// Story: a store is in IndexedDB, and `databases()` rejects once. An empty store was made in OPFS, which hid the other one for ever.
test('while IndexedDB does not list its databases, a store in it is found all the same', async () => {
  vi.stubGlobal('FileSystemFileHandle', class {});
  expect(await visit('mail', 'kept')).toEqual(['indexeddb', 'new', undefined]);
  vi.stubGlobal('FileSystemFileHandle', FakeFileHandle);
  refuseIndexedDb(failing, 'databases');
  expect(await visit('mail')).toEqual(['indexeddb', 'clean', 'kept']);
  await expect(listStores()).rejects.toMatchObject(REFUSED);
  vi.restoreAllMocks();
  expect(await listStores()).toEqual(['mail']);
});

test.each([
  ['the page', FakeFileHandle],
  ['a service worker', class {}],
])(
  'while IndexedDB fails, a store in it is neither replaced nor deleted nor left out of a list, in %s',
  async (_, handles) => {
    vi.stubGlobal('FileSystemFileHandle', class {});
    await visit('mail', 'kept');
    vi.stubGlobal('FileSystemFileHandle', handles);
    refuseIndexedDb(failing, 'databases', 'open');
    await expect(visit('mail', 'v2')).rejects.toMatchObject(REFUSED);
    await expect(deleteStore('mail')).rejects.toMatchObject(REFUSED);
    await expect(visit('mail', 'v2')).rejects.toMatchObject(REFUSED);
    vi.restoreAllMocks();
    expect(await visit('mail')).toEqual(['indexeddb', 'clean', 'kept']);
    expect(await deleteStore('mail')).toBe(true);
  },
);

test('where both fail, or the only one, no store is made in memory', async () => {
  opfs.refusal = failing();
  refuseIndexedDb(failing, 'databases', 'open');
  await expect(visit('notes')).rejects.toMatchObject(REFUSED);
  await expect(listStores()).rejects.toMatchObject(REFUSED);
  // WebKitGTK has no OPFS.
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
  await expect(visit('notes')).rejects.toMatchObject(REFUSED);
  vi.restoreAllMocks();
  refuseIndexedDb(failing, 'open');
  await expect(visit('notes')).rejects.toMatchObject(REFUSED);
});

test.each([
  ['Firefox', forbidden],
  ['Safari', failing],
])('in a private window of %s, which always refuses OPFS, stores are in IndexedDB', async (_, refusal) => {
  opfs.refusal = refusal();
  expect(await visit('notes', 'v1')).toEqual(['indexeddb', 'new', undefined]);
  expect(await visit('notes')).toEqual(['indexeddb', 'clean', 'v1']);
  expect(await listStores()).toEqual(['notes']);
  const memory = await sync.open('other', { wasm });
  expect(memory.storage.kind).toBe('memory');
  await memory.close();
  expect(await deleteStore('notes')).toBe(true);
  expect(await deleteStore('notes')).toBe(false);
  expect(await listStores()).toEqual([]);
});

test('where IndexedDB is broken for ever, stores are in OPFS', async () => {
  refuseIndexedDb(failing, 'databases', 'open');
  expect(await visit('notes', 'v1')).toEqual(['opfs', 'new', undefined]);
  expect(await visit('notes')).toEqual(['opfs', 'clean', 'v1']);
  expect(await listStores()).toEqual(['notes']);
  expect(await deleteStore('notes')).toBe(true);
  expect(await listStores()).toEqual([]);
});

const forbid = (): never => {
  throw forbidden();
};

test.each([
  ['both', new FakeLocks()],
  // Story: blocked site data made `open` reject with VARVE_INTERNAL in Chromium, which refuses the locks, too.
  ['both, and locks', { query: async () => forbid(), request: async () => forbid() }],
])('where the settings of the browser forbid %s, stores are in memory', async (_, locks) => {
  vi.stubGlobal('navigator', { storage: opfs.storage, locks });
  opfs.refusal = forbidden();
  refuseIndexedDb(forbidden, 'databases', 'open');
  expect(await visit('notes', 'v1')).toEqual(['memory', 'new', undefined]);
  await expect(open('notes', { wasm, storage: 'indexeddb' })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
  expect(await listStores()).toEqual([]);
});

test('nothing is deleted where the settings forbid both', async () => {
  opfs.refusal = forbidden();
  refuseIndexedDb(forbidden, 'databases', 'open');
  expect(await deleteStore('notes')).toBe(false);
});
