/** check() and repair() through both APIs, over slot files that the tests damage. */

import { beforeEach, expect, test, vi } from 'vitest';
import { open } from '../../js/src/index.ts';
import { repair as repairInline } from '../../js/src/inline.ts';
import { inlineEngine } from '../../js/src/server/inline.ts';
import { SLOT_DATA_OFFSET, SlotError } from '../../js/src/storage/device.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import { repairNamed } from '../../js/src/store/requests.ts';
import type { Store } from '../../js/src/store/store.ts';
import { open as openSync, repair as repairSync, type SyncStore } from '../../js/src/synchronous.ts';
import { type ReadSlot, readSlot, runCheck, survey } from '../../js/src/tools/check.ts';
import { loadTools } from '../../js/src/tools/instance.ts';
import { filesOf as placesOf, TABLE } from '../../js/src/tools/slot-page.ts';
import type { Key } from '../../js/src/types.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { randomFrom, spawnServer, tools, wasm } from './support/engine.ts';
import { type FakeOpfs, stubOpfs } from './support/fake-opfs.ts';
import { KeptDevices } from './support/kept-devices.ts';
import { closedAfterTest } from './support/stores.ts';

const PAGE_BYTES = 4096;
let opfs: FakeOpfs;

beforeEach(() => {
  opfs = stubOpfs();
});

async function openTest(name = 'test', options: OpenOptions<Key, unknown> = {}): Promise<Store<Key, unknown>> {
  return closedAfterTest(await openStore<Key, unknown>(name, { wasm, ...options }, spawnServer));
}

async function openSyncTest(options: object = {}): Promise<SyncStore<Key, unknown>> {
  return closedAfterTest(await openSync<Key, unknown>('test', { wasm, compactor: false, ...options }));
}

const textOf = (number: number): string => `value of ${number} `.repeat(20);

/** Fills a store: some entries in a table, some in the log. */
async function fill(store: Store<Key, unknown>, count = 2000): Promise<void> {
  await store.setMany(Array.from({ length: count }, (_, number) => [['item', number], textOf(number)]));
  await store.compact();
  await store.set('late', 'in the log', { durability: 'strict' });
}

/** Slot files of a store. */
async function filesOf(name: string) {
  const root = await (await opfs.storage.getDirectory()).getDirectoryHandle('varve');
  return (await root.getDirectoryHandle(name)).files;
}

/** The slot file whose page says that it holds a file of this role: 1 manifest, 2 log, 3 table. */
async function fileOf(name: string, role: number): Promise<{ bytes: Uint8Array }> {
  const found = [...(await filesOf(name)).values()].filter(({ bytes }) =>
    placesOf(bytes.subarray(0, SLOT_DATA_OFFSET), bytes.length).some(({ kind }) => kind === role),
  );
  // Pages of files that are gone stay, so the newest page counts.
  const generation = ({ bytes }: { bytes: Uint8Array }) =>
    new DataView(bytes.buffer, bytes.byteOffset).getUint32(32, true);
  found.sort((a, b) => generation(b) - generation(a));
  if (found[0] === undefined) throw new Error(`no file has role ${role}`);
  return found[0];
}

function flip(file: { bytes: Uint8Array }, offset: number): void {
  file.bytes[offset] = (file.bytes[offset] ?? 0) ^ 0x10;
}

test.each(['memory', 'opfs'] as const)('a sound store in %s is ok, and all of it was checked', async (storage) => {
  const store = await openTest('test', { storage });
  await fill(store);
  const seen: number[] = [];
  const report = await store.check({ tools, onProgress: ({ done, total }) => seen.push(done / total) });
  expect(report).toMatchObject({ ok: true, problems: [], segments: 1 });
  expect(report.tables).toBeGreaterThan(0);
  expect(report.blocks).toBeGreaterThan(20);
  expect(report.entries).toBeGreaterThanOrEqual(2000);
  await Promise.resolve();
  expect(seen.at(-1)).toBe(1);
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
});

test('a check names the damaged block while reads and writes continue', async () => {
  const store = await openTest();
  await fill(store);
  flip(await fileOf('test', 3), PAGE_BYTES + 10_000);
  const checking = store.check({ tools });
  const written = store.set('meanwhile', 1);
  const report = await checking;
  await written;
  expect(report.ok).toBe(false);
  expect(report.problems).toHaveLength(1);
  expect(report.problems[0]).toMatchObject({ kind: 'block', message: 'block checksum', level: 6 });
  expect(report.problems[0]?.file).toMatch(/^table \d+$/);
  expect(await store.get('meanwhile')).toBe(1);
  expect((await store.stats()).snapshots).toBe(0);
});

// Story: `encrypt()` resolved although a damaged table, which no merge can read, stayed as it was: its plain values were in the files.
test('compact() and encrypt() reject if a table cannot be read, each time', async () => {
  const store = await openTest();
  await fill(store);
  flip(await fileOf('test', 3), PAGE_BYTES + 10_000);
  const damaged = { code: 'VARVE_CORRUPT' };
  await store.set(['item', 5], 'new');
  await expect(store.compact()).rejects.toMatchObject(damaged);
  const message = /^The store is encrypted and opens with this key only. Its old files are left: The store is damaged/;
  const encrypted = store.encrypt({ key: new Uint8Array(32).fill(1) });
  await expect(encrypted).rejects.toMatchObject({ ...damaged, message: expect.stringMatching(message) });
  await expect(store.compact()).rejects.toMatchObject(damaged);
  expect(await store.get(['item', 5])).toBe('new');
});

test('tables that a compaction replaces meanwhile are checked as they were', async () => {
  const store = await openTest();
  await fill(store);
  const checks = Array.from({ length: 3 }, async (_, round) => {
    const check = store.check({ tools });
    await store.setMany(Array.from({ length: 500 }, (__, number) => [['item', number], `round ${round}`]));
    await store.compact();
    return check;
  });
  for (const report of await Promise.all(checks)) expect(report.problems).toEqual([]);
});

/**
 * The story: in a store that is opened in its own realm, the client chooses the numbers of its snapshots, and a check took the lowest one
 * that was free. So the next snapshot or transaction of the client replaced that of the check, and the end of the check closed it: its reads
 * failed with "This snapshot is closed or unknown". Seed 74668201 of the API's fuzz, over files.
 */
test('a check leaves alone the snapshots that are taken while it runs', async () => {
  const store = closedAfterTest(await open<Key, number>('own realm', { wasm, storage: new KeptDevices() }));
  await store.setMany(Array.from({ length: 50_000 }, (_, i): [Key, number] => [i, i]));
  await store.compact();
  let isChecking = true;
  const checking = store.check({ tools }).finally(() => {
    isChecking = false;
  });
  const taken = [store.snapshot()];
  while (isChecking) {
    taken.push(store.snapshot());
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await checking).toMatchObject({ ok: true });
  await store.clear();
  expect(await Promise.all(taken.map((snapshot) => snapshot.count()))).toEqual(taken.map(() => 50_000));
});

test('a check does not read slots without a table again after it has copied them, because they may be lent by then', async () => {
  const storage = new KeptDevices();
  const options = { storage, wasm, memoryBytes: 2 ** 20 };
  const store = await open<Key, unknown>('kept', options);
  for (let round = 0; round < 3; round++) await fill(store);
  await store.close();
  const device = await storage.open('kept', { lockTimeout: 0 });
  const input = survey(device, -1);
  const others = input.images.filter(({ page, bytes }) => placesOf(page, bytes).every(({ kind }) => kind !== TABLE));
  expect(others.filter(({ pieces }) => pieces.length > 0).length).toBeGreaterThan(1);
  for (const { slot } of others) device.release(slot);
  const read: ReadSlot = (slot, at, length) => readSlot(device, slot, at, length);
  const report = await runCheck(await loadTools(tools), input, read);
  expect(report).toMatchObject({ ok: true, problems: [] });
  expect(report.entries).toBeGreaterThan(0);
  await device.closeAll();
});

test('over a storage that commits later a check has the read point at which all its bytes were there', async () => {
  const storage = new ChunkAdapter();
  const opening = vi.spyOn(storage, 'open');
  const store = closedAfterTest(await open<Key, unknown>('later', { storage, wasm, memoryBytes: 2 ** 20 }));
  const random = randomFrom(1);
  const noise = (): Uint8Array => Uint8Array.from({ length: 4096 }, () => random(256));
  const refill = async (): Promise<void> => {
    await store.setMany(Array.from({ length: 60 }, (_, i) => [i, noise()]));
    await store.compact();
  };
  await refill();
  // Whenever the check has to fetch something, all tables are replaced by others, and their slots are used again.
  const device = await (opening.mock.results[0]?.value as ReturnType<ChunkAdapter['open']>);
  const resident = device.resident.bind(device);
  let fetches = 0;
  let isRefilling = false;
  device.resident = async (call) => {
    // Compactions also fetch.
    if (isRefilling) return resident(call);
    isRefilling = true;
    fetches++;
    for (let i = 0; i < 3; i++) await refill();
    isRefilling = false;
    return resident(call);
  };
  const report = await store.check({ tools });
  expect(fetches).toBeGreaterThan(1);
  expect(report).toMatchObject({ ok: true, problems: [] });
});

test('a table that cannot be read is a problem, but the check and the store continue', async () => {
  const storage = new KeptDevices();
  const opening = vi.spyOn(storage, 'open');
  const store = closedAfterTest(await open<Key, unknown>('kept', { storage, wasm, memoryBytes: 2 ** 20 }));
  await fill(store);
  const device = await (opening.mock.results[0]?.value as ReturnType<KeptDevices['open']>);
  const read = device.read.bind(device);
  const reading = vi.spyOn(device, 'read').mockImplementation((slot, into, at) => {
    const page = new Uint8Array(PAGE_BYTES);
    read(slot, page, 0);
    const isOfTable = placesOf(page, Number.POSITIVE_INFINITY).some(
      ({ kind, start, end }) => kind === TABLE && start <= at && at < end,
    );
    if (isOfTable) throw new SlotError('io', 'EIO');
    return read(slot, into, at);
  });
  const { problems } = await store.check({ tools });
  reading.mockRestore();
  expect(problems).toMatchObject([{ kind: 'block', message: 'a table cannot be read to its end' }]);
  await store.set('later', 1);
  expect(await store.get(['item', 1])).toBe(textOf(1));
  expect((await store.stats()).snapshots).toBe(0);
  expect((await store.check({ tools })).ok).toBe(true);
});

test('a log that is shorter than the open store wrote it is reported', async () => {
  const store = await openTest();
  await fill(store);
  const log = await fileOf('test', 2);
  const {
    log: { segmentBytes: walSegmentBytes },
  } = await store.stats();
  log.bytes.fill(0, PAGE_BYTES + 48, PAGE_BYTES + walSegmentBytes);
  const { problems } = await store.check({ tools });
  // The second answer comes if the log was sealed behind the damage meanwhile. One idle moment is enough for that.
  const message = expect.stringMatching(
    /^a WAL record (that was written does not verify|is damaged that was durable)$/,
  );
  expect(problems).toMatchObject([{ kind: 'log', message }]);
});

test('a signal ends a check, and closing the store does', async () => {
  const store = await openTest();
  await fill(store, 20_000);
  const controller = new AbortController();
  const checking = store.check({ tools, signal: controller.signal, onProgress: () => controller.abort() });
  await expect(checking).rejects.toMatchObject({ name: 'AbortError' });
  await expect(store.check({ tools, signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
  const closed = expect(store.check({ tools })).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  await store.close();
  await closed;
});

test('a signal ends the check that it was given to, and no other', async () => {
  const db = await openTest();
  await fill(db);
  const abort = new AbortController();
  const [one, other] = [db.check({ tools, signal: abort.signal }), db.check({ tools })];
  const rejected = expect(one).rejects.toMatchObject({ name: 'AbortError' });
  abort.abort();
  await rejected;
  expect((await other).ok).toBe(true);
});

test('where the tools cannot be loaded the error of a check explains how to pass their place', async () => {
  const store = await openTest();
  await expect(store.check({ tools: 'http://127.0.0.1:1/tools.wasm' })).rejects.toMatchObject({
    code: 'VARVE_UNAVAILABLE',
    message: expect.stringContaining('option tools'),
  });
});

test('a synchronous store is checked in slices of its own', async () => {
  const store = await openSyncTest();
  for (let number = 0; number < 3000; number++) store.set(['item', number], textOf(number));
  await store.compact();
  store.set('late', 1, { durability: 'strict' });
  expect(await store.check({ tools })).toMatchObject({ ok: true, problems: [] });
  flip(await fileOf('test', 3), PAGE_BYTES + 100);
  expect(await store.check({ tools })).toMatchObject({ ok: false, problems: [{ kind: 'block' }] });
});

test('a store that does not open names repair(), which salvages it', async () => {
  const store = await openTest();
  await fill(store);
  await store.close();
  // The log is damaged before its seal: the store refuses to open.
  flip(await fileOf('test', 2), PAGE_BYTES + 48 + 30);
  await expect(openTest()).rejects.toMatchObject({
    code: 'VARVE_CORRUPT',
    message: expect.stringContaining('repair()'),
  });
  const before = await snapshotOf('test');
  const seen: number[] = [];
  const onProgress = ({ done, total }: { done: number; total: number }) => seen.push(done / total);
  const report = await repairNamed('test', { tools, onProgress }, spawnServer);
  expect(report).toMatchObject({ name: 'test-repaired', entries: 2000, mayResurrect: false });
  // Behind its end lie the earlier bytes of that place, from another segment. They do not verify either.
  expect(report.lost[0]).toMatchObject({ data: true, message: 'records of a WAL segment do not verify', offset: 48 });
  expect(seen.at(-1)).toBe(1);
  expect(await snapshotOf('test')).toEqual(before);
  const repaired = await openTest('test-repaired');
  expect(await repaired.count()).toBe(2000);
  expect(await repaired.get(['item', 1234])).toBe(textOf(1234));
  expect((await repaired.check({ tools })).problems).toEqual([]);
});

async function snapshotOf(name: string): Promise<string[]> {
  return [...(await filesOf(name))].map(([file, { bytes }]) => `${file} ${Buffer.from(bytes).toString('base64')}`);
}

test('a damaged block costs its keys, which the report names; twice repaired it has its old name', async () => {
  const store = await openTest();
  await fill(store);
  await store.close();
  flip(await fileOf('test', 3), PAGE_BYTES + 20_000);
  const report = await repairNamed('test', { tools, into: 'saved' }, spawnServer);
  expect(report.lost).toMatchObject([{ data: true, message: 'blocks of a table do not verify' }]);
  const [lost] = report.lost;
  const saved = await openTest('saved');
  const missing: number[] = [];
  for (let number = 0; number < 2000; number++) if (!(await saved.has(['item', number]))) missing.push(number);
  expect(missing.length).toBeGreaterThan(0);
  expect(missing.length).toBeLessThan(100);
  expect(report.entries).toBe(2001 - missing.length);
  // The named range, seen as keys, contains every missing key.
  const range = await saved.count({ gte: ['item', missing[0] as number], lte: ['item', missing.at(-1) as number] });
  expect(range).toBe(0);
  expect(lost?.from === undefined && lost?.to === undefined).toBe(false);
  await saved.close();
  const again = await repairNamed('saved', { tools, into: 'copy' }, spawnServer);
  expect(again).toMatchObject({ entries: report.entries, lost: [] });
});

test('a repair refuses stores that it must not touch, and leaves nothing behind when it fails', async () => {
  const store = await openTest();
  await fill(store, 20_000);
  const code = (name: string) => ({ code: name });
  const repair = (name: string, options: object) => repairNamed(name, { tools, ...options }, spawnServer);
  await expect(repair('test', { lockTimeout: 0 })).rejects.toMatchObject(code('VARVE_LOCKED'));
  await store.close();
  await expect(repair('test', { into: 'test' })).rejects.toMatchObject(code('VARVE_INVALID_ARGUMENT'));
  await expect(repair('none', {})).rejects.toMatchObject(code('VARVE_NOT_FOUND'));
  await (await openTest('other')).close();
  await expect(repair('test', { into: 'other' })).rejects.toMatchObject(code('VARVE_EXISTS'));
  opfs.quota = opfs.used() + 100_000;
  await expect(repair('test', {})).rejects.toMatchObject(code('VARVE_STORAGE_FULL'));
  await expect(filesOf('test-repaired')).rejects.toThrow('no such directory');
  opfs.quota = Number.POSITIVE_INFINITY;
  const controller = new AbortController();
  const aborted = repair('test', { signal: controller.signal });
  setImmediate(() => controller.abort());
  await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
  await expect(filesOf('test-repaired')).rejects.toThrow('no such directory');
  expect(await repair('test', {})).toMatchObject({ entries: 20_001, lost: [] });
});

/**
 * The story: the code of the engine was still being loaded when a repair was aborted. The request to stop came together with that to repair,
 * which had not begun. So it was lost: the repair went on, and made the new store.
 */
test('a repair that is aborted before it begins makes no store', async () => {
  const storage = new KeptDevices();
  const store = await open<Key, unknown>('kept', { storage, wasm });
  await fill(store);
  await store.close();
  const abort = new AbortController();
  const repaired = repairNamed('kept', { tools, signal: abort.signal }, () => inlineEngine(storage));
  abort.abort();
  await expect(repaired).rejects.toMatchObject({ name: 'AbortError' });
  expect(await storage.list()).toEqual(['kept']);
});

test.each([
  ['varve/synchronous', repairSync],
  ['varve/inline', repairInline],
])('%s can repair a store', async (_, repair) => {
  const store = await openSyncTest();
  store.set('a', 1, { expiresIn: 1e9 });
  store.set('b', 2, { durability: 'strict' });
  const entry = store.getEntry('a');
  await store.close();
  const report = await repair('test', { tools, into: 'copy', dropOlder: true });
  expect(report).toEqual({
    ...{ name: 'copy', entries: 2, tables: 0, segments: 1, records: 2, older: 0 },
    ...{ sealed: true, mayResurrect: false, lost: [] },
  });
  const copy = closedAfterTest(await openSync<Key, unknown>('copy', { wasm, compactor: false }));
  expect(copy.getEntry('a')).toEqual(entry);
});
