// Stores in Deno KV, on a stand-in with its limits: operations, the fence, leases, connections that fail, deletion.

import { afterEach, expect, test, vi } from 'vitest';
import { denoKv } from '../../js/src/deno-kv.ts';
import { deleteStore, listStores, open, repair } from '../../js/src/index.ts';
import { CHUNK_BYTES } from '../../js/src/storage/buffered/chunk.ts';
import type { BufferedDevice } from '../../js/src/storage/buffered/device.ts';
import { DenoKvStorage } from '../../js/src/storage/denokv/adapter.ts';
import { keyBytes, pack } from '../../js/src/storage/denokv/pack.ts';
import * as sync from '../../js/src/synchronous.ts';
import { tools, wasm } from './support/engine.ts';
import { FakeKv, FakeKvState, type Fault } from './support/fake-kv.ts';

const KIB = 1024;
const LEASE_MS = 20_000;
/** The clocks and timers of a lease. */
const CLOCKS = ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const;

/** How many chunks the first bytes of a slot take behind its header page. */
const chunks = (kib: number): number => Math.ceil((kib * KIB) / CHUNK_BYTES);

afterEach(() => {
  vi.useRealTimers();
});

function storageOn(state: FakeKvState, leaseMs = LEASE_MS): { kv: FakeKv; storage: DenoKvStorage } {
  const kv = new FakeKv(state);
  return { kv, storage: new DenoKvStorage(kv, { prefix: ['varve'], leaseMs }) };
}

const bytes = (...values: number[]): Uint8Array<ArrayBuffer> => Uint8Array.from(values);

async function read(device: BufferedDevice, slot: number, at: number, length: number): Promise<Uint8Array> {
  const into = new Uint8Array(length);
  return into.subarray(0, await device.resident(() => device.read(slot, into, at)));
}

/** Resolves when the store's own work after its first writes is done, for example adding a spare slot. */
async function quiet(kv: FakeKv): Promise<void> {
  for (let [turn, calls] = [0, -1]; turn < 50; turn++) {
    if (calls !== kv.calls) [turn, calls] = [0, kv.calls];
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('the next opening reads the writes of the one before', async () => {
  const state = new FakeKvState();
  const options = { storage: denoKv(new FakeKv(state)), wasm };
  const db = await open('notes', options);
  expect([db.storage, db.recovery.state]).toEqual([{ kind: 'deno-kv' }, 'new']);
  await db.set(['note', 42], { title: 'Silt' }, { durability: 'strict' });
  await db.setMany(Array.from({ length: 3000 }, (_, n) => [['many', n], `value ${n}`.repeat(40)]));
  await db.close();
  const again = await open('notes', { ...options, storage: denoKv(new FakeKv(state)) });
  expect([again.recovery.state, await again.get(['note', 42])]).toEqual(['clean', { title: 'Silt' }]);
  expect(await again.count({ prefix: ['many'] })).toBe(3000);
  expect(await again.get(['many', 2999])).toBe('value 2999'.repeat(40));
  await again.close();
});

test('a small commit is one operation, and a hundred sets of one turn are', async () => {
  const state = new FakeKvState();
  const { kv, storage } = storageOn(state);
  const db = await open('notes', { storage, wasm });
  await db.set('warm', 1);
  await quiet(kv);
  let [calls, commits] = [kv.calls, state.commits];
  await db.set('a', 1);
  expect([kv.calls - calls, state.commits - commits]).toEqual([1, 1]);
  [calls, commits] = [kv.calls, state.commits];
  await Promise.all(Array.from({ length: 100 }, (_, n) => db.set(n, 'value')));
  expect([kv.calls - calls, state.commits - commits]).toEqual([1, 1]);
  calls = kv.calls;
  expect(await db.get(99)).toBe('value');
  await db.set('strict', 1, { durability: 'strict' });
  expect(kv.calls - calls).toBe(1);
  await db.close();
});

test('a commit that is too large for one operation is several, within the limits, and leaves nothing behind', async () => {
  const state = new FakeKvState();
  const { storage } = storageOn(state);
  const device = await storage.open('large', { lockTimeout: 0 });
  for (let round = 1; round <= 3; round++) {
    for (let slot = 0; slot < 4; slot++)
      device.write(slot, new Uint8Array(1200 * KIB).fill(round * 10 + slot), 4 * KIB);
    await device.committed();
  }
  expect(await read(device, 3, 1100 * KIB, 2)).toEqual(bytes(33, 33));
  await device.closeAll();
  expect(state.operationBytesMax).toBeGreaterThan(700 * KIB);
  // The chunks of the earlier rounds are gone.
  expect(state.keys('chunk').length).toBe(4 * chunks(1200));
  expect(state.keys('debris').length).toBe(0);
  const again = await storage.open('large', { lockTimeout: 0 });
  for (let slot = 0; slot < 4; slot++)
    expect(await read(again, slot, 1203 * KIB, 9000)).toEqual(new Uint8Array(1024).fill(30 + slot));
  again.truncate(2, 100 * KIB);
  again.truncate(3, 0);
  await again.closeAll();
  expect(state.keys('chunk').length).toBe(2 * chunks(1200) + chunks(96));
});

test('more is deleted than one operation can delete', async () => {
  const state = new FakeKvState();
  const { storage } = storageOn(state);
  const name = 'n'.repeat(250);
  const device = await storage.open(name, { lockTimeout: 0 });
  for (let slot = 0; slot < 8; slot++) {
    device.write(slot, new Uint8Array(8000 * KIB).fill(slot + 1), 4 * KIB);
    await device.committed();
  }
  expect(state.keys('chunk').length).toBe(8 * chunks(8000));
  for (let slot = 0; slot < 8; slot++) device.truncate(slot, 0);
  device.write(0, bytes(1, 2, 3), 0);
  await device.closeAll();
  expect([state.keys('chunk').length, state.keys('debris').length]).toEqual([0, 0]);
  const again = await storage.open(name, { lockTimeout: 0 });
  expect(await read(again, 0, 0, 10)).toEqual(bytes(1, 2, 3));
  await again.closeAll();
});

test('changes are packed as tightly as they may be, in order', () => {
  const change = (n: number, size: number) => ({ key: ['data', n], bytes: new Uint8Array(size) });
  const sizes = (count: number, size: number): number[] =>
    pack(
      Array.from({ length: count }, (_, n) => change(n, size)),
      40,
    ).map((group) => group.length);
  expect(sizes(0, 1)).toEqual([]);
  expect(sizes(30, 64 * KIB)).toEqual([12, 12, 6]);
  expect(sizes(2500, 10)).toEqual([999, 999, 502]);
  const long = Array.from({ length: 200 }, (_, n) => ({ key: ['k'.repeat(2000), n] }));
  expect(pack(long, 40).map((group) => group.length)).toEqual([40, 40, 40, 40, 40]);
  expect(pack(long, 40).flat()).toEqual(long);
  expect(keyBytes(['a\0', 1, true, new Uint8Array(3), 255n])).toBeGreaterThanOrEqual(5 + 9 + 1 + 5 + 5);
});

test('a journal that has grown long is folded, and its rows are deleted', async () => {
  const state = new FakeKvState();
  const { storage } = storageOn(state);
  const device = await storage.open('fold', { lockTimeout: 0 });
  for (let i = 0; i < 1100; i++) {
    device.write(i % 3, bytes(i), 5 * KIB + i);
    await device.committed();
  }
  await device.closeAll();
  expect(state.keys('row').length).toBeLessThan(150);
  const again = await storage.open('fold', { lockTimeout: 0 });
  for (const i of [0, 1, 2, 998, 999, 1099]) expect(await read(again, i % 3, 5 * KIB + i, 1)).toEqual(bytes(i));
  await again.closeAll();
});

test('a second opener is refused, waits for the first to close, and is aborted by its signal', async () => {
  const state = new FakeKvState();
  const [one, two] = [storageOn(state).storage, storageOn(state).storage];
  const db = await open('one', { storage: one, wasm });
  const refusal = { code: 'VARVE_LOCKED', message: expect.stringMatching(/has the store "one" open.*in \d+ ms/) };
  await expect(open('one', { storage: two, wasm, lockTimeout: 0 })).rejects.toMatchObject(refusal);
  await expect(deleteStore('one', { storage: two, lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  const aborted = two.open('one', { lockTimeout: 20_000, signal: AbortSignal.timeout(30) });
  await expect(aborted).rejects.toMatchObject({ name: 'TimeoutError' });
  const waiting = open('one', { storage: two, wasm, lockTimeout: 30_000 });
  await db.set('a', 1);
  await db.close();
  const second = await waiting;
  expect(await second.get('a')).toBe(1);
  await second.close();
});

test('a lease is renewed while nothing is written, so no other process gets the store', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  const state = new FakeKvState();
  const device = await storageOn(state, 1500).storage.open('idle', { lockTimeout: 0 });
  await device.committed();
  const { commits } = state;
  const other = storageOn(state).storage.open('idle', { lockTimeout: 3500 });
  const isRefused = expect(other).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await vi.advanceTimersByTimeAsync(4000);
  await isRefused;
  expect(state.commits - commits).toBeGreaterThanOrEqual(2);
  await device.closeAll();
  const closed = state.commits;
  await vi.advanceTimersByTimeAsync(60_000);
  expect([state.commits, vi.getTimerCount()]).toEqual([closed, 0]);
});

test('the store of a process that ended goes to the next one when the lease is over, and not before', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  const state = new FakeKvState();
  const dead = storageOn(state, 2000);
  const device = await dead.storage.open('dead', { lockTimeout: 0 });
  device.write(0, bytes(1, 2, 3), 0);
  await device.committed();
  dead.kv.kill();
  await vi.advanceTimersByTimeAsync(1900);
  await expect(storageOn(state).storage.open('dead', { lockTimeout: 0 })).rejects.toMatchObject({
    code: 'VARVE_LOCKED',
  });
  const next = storageOn(state).storage.open('dead', { lockTimeout: 30_000 });
  await vi.advanceTimersByTimeAsync(1000);
  const heir = await next;
  expect(await read(heir, 0, 0, 3)).toEqual(bytes(1, 2, 3));
  await heir.closeAll();
});

const YEAR_MS = 365 * 24 * 3600 * 1000;

test('a lease that was written under a wrong clock is over when the head has not changed for its length', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  const state = new FakeKvState();
  const dead = storageOn(state, 2000);
  const now = Date.now();
  vi.setSystemTime(now + 1000 * YEAR_MS);
  const device = await dead.storage.open('future', { lockTimeout: 0 });
  device.write(0, bytes(1, 2, 3), 0);
  await device.committed();
  dead.kv.kill();
  vi.setSystemTime(now);
  await expect(storageOn(state).storage.open('future', { lockTimeout: 0 })).rejects.toMatchObject({
    code: 'VARVE_LOCKED',
    message: expect.stringContaining('is free in 2000 ms'),
  });
  let isOpen = false;
  const next = storageOn(state).storage.open('future', { lockTimeout: 5000 });
  void next.then(() => {
    isOpen = true;
  });
  await vi.advanceTimersByTimeAsync(1900);
  expect(isOpen).toBe(false);
  await vi.advanceTimersByTimeAsync(1000);
  const heir = await next;
  expect(await read(heir, 0, 0, 3)).toEqual(bytes(1, 2, 3));
  await heir.closeAll();
});

test.each([
  ['back', -YEAR_MS],
  ['forward', YEAR_MS],
])('a holder whose clock jumps %s renews its lease, and keeps the store', async (_, jump) => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  const state = new FakeKvState();
  const device = await storageOn(state, 1500).storage.open('jump', { lockTimeout: 0 });
  await device.committed();
  vi.setSystemTime(Date.now() + jump);
  // An opener with the same clock; if that jumped forward, the first renewal must come before the opener looks.
  await vi.advanceTimersByTimeAsync(600);
  const { commits } = state;
  const other = storageOn(state).storage.open('jump', { lockTimeout: 6000 });
  const isRefused = expect(other).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await vi.advanceTimersByTimeAsync(6500);
  await isRefused;
  expect(state.commits - commits).toBeGreaterThanOrEqual(6);
  device.write(0, bytes(1), 0);
  await device.committed();
  await device.closeAll();
});

test('a commit after the clock jumped forward, as after a sleep, renews the lease', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  const state = new FakeKvState();
  const device = await storageOn(state).storage.open('sleep', { lockTimeout: 0 });
  await device.committed();
  vi.setSystemTime(Date.now() + YEAR_MS);
  device.write(0, bytes(1), 0);
  await device.committed();
  await expect(storageOn(state).storage.open('sleep', { lockTimeout: 0 })).rejects.toMatchObject({
    code: 'VARVE_LOCKED',
  });
  await device.closeAll();
});

test('a holder with a long lease keeps its store from an opener with a short one', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  const state = new FakeKvState();
  const device = await storageOn(state, 20_000).storage.open('long', { lockTimeout: 0 });
  await device.committed();
  const other = storageOn(state, 1000).storage.open('long', { lockTimeout: 50_000 });
  const isRefused = expect(other).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await vi.advanceTimersByTimeAsync(51_000);
  await isRefused;
  await device.closeAll();
});

test('a holder whose store was taken over changes and reads nothing any more', async () => {
  const state = new FakeKvState();
  const { kv, storage } = storageOn(state);
  const zombie = await open('zombie', { storage, wasm });
  await zombie.set('a', 1);
  await quiet(kv);
  state.expire();
  const heir = await open('zombie', { storage: storageOn(state).storage, wasm });
  const refusal = { code: 'VARVE_LOCKED', message: expect.stringContaining('has taken the store over') };
  await expect(zombie.set('b', 2)).rejects.toMatchObject(refusal);
  await expect(zombie.set('c', 3)).rejects.toMatchObject({ code: expect.stringMatching(/^VARVE_(LOCKED|POISONED)$/) });
  await zombie.close().catch(() => undefined);
  await heir.set('d', 4);
  expect(await heir.getMany(['a', 'b', 'c', 'd'])).toEqual([1, undefined, undefined, 4]);
  await heir.close();
  const after = await open('zombie', { storage: storageOn(state).storage, wasm });
  expect(await after.getMany(['a', 'b', 'c', 'd'])).toEqual([1, undefined, undefined, 4]);
  await after.close();
});

test('a zombie in the middle of a large commit is fenced between its operations', async () => {
  const state = new FakeKvState();
  const { kv, storage } = storageOn(state);
  const zombie = await storage.open('middle', { lockTimeout: 0 });
  zombie.write(0, new Uint8Array(3000 * KIB).fill(1), 4 * KIB);
  await zombie.committed();
  const before = kv.calls;
  zombie.write(0, new Uint8Array(3000 * KIB).fill(2), 4 * KIB);
  const commit = zombie.committed();
  commit.catch(() => undefined);
  while (kv.calls < before + 2) await new Promise((resolve) => setImmediate(resolve));
  state.expire();
  const heir = await storageOn(state).storage.open('middle', { lockTimeout: 0 });
  await expect(commit).rejects.toMatchObject({ kind: 'closed' });
  expect(await read(heir, 0, 2900 * KIB, 2)).toEqual(bytes(1, 1));
  heir.write(0, bytes(3), 4 * KIB);
  await heir.closeAll();
  await zombie.closeAll();
  expect(state.keys('chunk').length).toBe(chunks(3000));
  expect(state.keys('debris').length).toBe(0);
});

test('a reader whose store was taken over gets an error, and no bytes of the next holder', async () => {
  const state = new FakeKvState();
  const first = await storageOn(state).storage.open('reader', { lockTimeout: 0 });
  first.write(1, new Uint8Array(100_000).fill(1), 4096);
  await first.closeAll();
  const zombie = await storageOn(state).storage.open('reader', { lockTimeout: 0 });
  state.expire();
  const heir = await storageOn(state).storage.open('reader', { lockTimeout: 0 });
  await expect(read(zombie, 1, 50_000, 10)).rejects.toMatchObject({ kind: 'closed' });
  await Promise.all([zombie.closeAll(), heir.closeAll()]);
});

test.each(['refused', 'unheard'] as const)(
  'calls that are %s now and then are sent again, and the caller does not notice',
  async (fault) => {
    const state = new FakeKvState();
    const { kv, storage } = storageOn(state);
    // Never three times in a row: an attempt takes one call, two calls or three.
    kv.fault = (call) => ([0, 3].includes(call % 7) ? fault : undefined);
    const db = await open('shaky', { storage, wasm });
    for (let n = 0; n < 12; n++) await db.set(n, n);
    await db.close();
    const again = await open('shaky', { storage: storageOn(state).storage, wasm });
    expect(await again.getMany(Array.from({ length: 12 }, (_, n) => n))).toEqual(
      Array.from({ length: 12 }, (_, n) => n),
    );
    await again.close();
  },
);

// The next write took the renewal in the head for itself: it was acknowledged, not written, and the store did not open again.
test('a write after a renewal that succeeded without a response is written', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  const state = new FakeKvState();
  const { kv, storage } = storageOn(state, 1500);
  const device = await storage.open('late', { lockTimeout: 0 });
  device.write(0, bytes(1), 0);
  await device.committed();
  const attempts: Fault[] = ['refused', 'refused', 'unheard'];
  kv.fault = (_, kind) => (kind === 'commit' ? attempts.shift() : undefined);
  while (attempts.length > 0) await vi.advanceTimersByTimeAsync(20);
  await quiet(kv);
  for (const value of [2, 3]) {
    device.write(0, bytes(value), value);
    await device.committed();
  }
  await device.closeAll();
  const again = await storageOn(state).storage.open('late', { lockTimeout: 0 });
  expect(await read(again, 0, 2, 2)).toEqual(bytes(2, 3));
  await again.closeAll();
});

test('a database that answers nothing any more fails the write, and the store opens again with what was acknowledged', async () => {
  const state = new FakeKvState();
  const { kv, storage } = storageOn(state);
  const db = await open('down', { storage, wasm });
  await db.set('kept', 1);
  await quiet(kv);
  kv.fault = () => 'refused';
  await expect(db.set('lost', 2)).rejects.toMatchObject({
    code: 'VARVE_IO',
    message: expect.stringContaining('was reset'),
  });
  await db.close().catch(() => undefined);
  await expect(open('down', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_IO' });
  await expect(listStores({ storage })).rejects.toMatchObject({ code: 'VARVE_IO' });
  state.expire();
  const again = await open('down', { storage: storageOn(state).storage, wasm });
  expect(await again.getMany(['kept', 'lost'])).toEqual([1, undefined]);
  await again.close();
});

test('names are listed and stores deleted without a key left behind; other keys are not touched', async () => {
  const state = new FakeKvState();
  const kv = new FakeKv(state);
  await kv.atomic().set(['varve', 'of the program'], 1).set(['other'], 2).commit();
  const [storage, apart] = [denoKv(kv), denoKv(kv, { prefix: ['apart', 7] })];
  for (const [name, where] of [
    ['b', storage],
    ['a', storage],
    ['c', apart],
  ] as const) {
    const db = await open(name, { storage: where, wasm });
    await db.set('k', new Uint8Array(100_000));
    await db.close();
  }
  expect([await listStores({ storage }), await listStores({ storage: apart })]).toEqual([['a', 'b'], ['c']]);
  expect(await deleteStore('a', { storage })).toBe(true);
  expect(await deleteStore('a', { storage })).toBe(false);
  expect(state.keys('a')).toEqual([]);
  expect(await listStores({ storage })).toEqual(['b']);
  expect([await deleteStore('b', { storage }), await deleteStore('c', { storage: apart })]).toEqual([true, true]);
  expect([...state.entries.values()].map(({ key }) => key)).toEqual([['varve', 'of the program'], ['other']]);
});

test('a store is checked, exported, and repaired into another one of the same database', async () => {
  const { storage } = storageOn(new FakeKvState());
  const db = await open('notes', { storage, wasm });
  await db.setMany(Array.from({ length: 500 }, (_, number) => [number, `value of ${number}`]));
  await db.compact();
  expect(await db.check({ tools })).toMatchObject({ ok: true, problems: [] });
  const copy = await open('copy', { storage, wasm });
  expect(await copy.import(db.export())).toMatchObject({ entries: 500 });
  await copy.close();
  await expect(repair('notes', { storage, tools, lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await db.close();
  expect(await repair('notes', { storage, tools })).toMatchObject({ name: 'notes-repaired', entries: 500, lost: [] });
  const repaired = await open('notes-repaired', { storage, wasm });
  expect(await repaired.get(123)).toBe('value of 123');
  await repaired.close();
});

test('a deleted row, a deleted chunk and a newer format are reported', async () => {
  const state = new FakeKvState();
  const { kv, storage } = storageOn(state);
  const device = await storage.open('holes', { lockTimeout: 0 });
  device.write(0, new Uint8Array(100_000).fill(1), 4096);
  await device.closeAll();
  const chunk = state.keys('chunk').at(-1)!;
  const { value } = await kv.get(chunk, { consistency: 'strong' });
  await kv.atomic().delete(chunk).commit();
  const again = await storage.open('holes', { lockTimeout: 0 });
  await expect(read(again, 0, 80_000, 10)).rejects.toMatchObject({ kind: 'io' });
  await again.closeAll();
  const row = state.keys('row')[0]!;
  const { value: kept } = await kv.get(row, { consistency: 'strong' });
  await kv.atomic().set(chunk, value).delete(row).commit();
  await expect(open('holes', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_CORRUPT' });
  // One that exists, and comes after a missing one.
  await kv
    .atomic()
    .set(row, kept)
    .set([...row.slice(0, -2), 1000, -1], kept)
    .commit();
  await expect(open('holes', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_CORRUPT' });
  const [head] = state.keys('store');
  await kv.atomic().set(head!, { format: 2, holder: null }).commit();
  await expect(open('holes', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_VERSION' });
});

// Story: a store whose journal had lost a row could not be opened, and not be deleted either, so its name was lost with it.
test('a store that lacks a row of its journal is deleted, with the chunks that only this row named', async () => {
  const state = new FakeKvState();
  const { kv, storage } = storageOn(state);
  const device = await storage.open('holes', { lockTimeout: 0 });
  for (let slot = 0; slot < 2; slot++) {
    device.write(slot, new Uint8Array(1200 * KIB).fill(1), 4096);
    await device.committed();
  }
  await device.closeAll();
  for (const row of state.keys('row').slice(0, 2)) await kv.atomic().delete(row).commit();
  await expect(storage.open('holes', { lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_CORRUPT' });
  expect(await deleteStore('holes', { storage })).toBe(true);
  expect(state.entries.size).toBe(0);
  await (await storage.open('holes', { lockTimeout: 0 })).closeAll();
});

test('an invalid database, prefix or lease is refused, and so is a synchronous store', async () => {
  const kv = new FakeKv();
  const invalid = expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' });
  expect(() => denoKv(Promise.resolve(kv) as unknown as FakeKv)).toThrow(invalid);
  expect(() => denoKv(undefined as unknown as FakeKv)).toThrow(invalid);
  expect(() => denoKv(kv, { prefix: ['x'.repeat(2000)] })).toThrow(invalid);
  for (const lease of [0, 999, Number.NaN, 2 ** 40]) expect(() => denoKv(kv, { lease })).toThrow(invalid);
  const storage = denoKv(kv);
  await expect(open('half \ud800', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  await expect(sync.open('later', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
});
