// Slots in rows: their content, the part of it that a crash leaves, and how many rows it takes.

import { expect, test } from 'vitest';
import { ObjectStorageAdapter } from '../../js/src/cloudflare/adapter.ts';
import { CHUNK_BYTES, ChunkTable } from '../../js/src/cloudflare/chunk-table.ts';
import { SqlDevice } from '../../js/src/cloudflare/sql-device.ts';
import * as sync from '../../js/src/synchronous.ts';
import { randomFrom, wasm } from './support/engine.ts';
import { FakeSql } from './support/fake-sql.ts';

function deviceOn(sql: FakeSql, maxBytes = 1e9): SqlDevice {
  const options = { maxBytes: () => maxBytes, slotsMax: 40, onFailure: () => undefined, onClose: () => undefined };
  return new SqlDevice(new ChunkTable(sql, 'device'), options);
}

function contentOf(device: SqlDevice, slot: number): Uint8Array {
  const bytes = new Uint8Array(device.size(slot));
  expect(device.read(slot, bytes, 0)).toBe(bytes.length);
  return bytes;
}

/** The expected content of a slot; `stored` is how much of it was written other than by growth. */
interface Model {
  bytes: Uint8Array;
  stored: number;
}

const SLOTS = 3;

/** One random change of a slot, to the device and to the model. */
function change(device: SqlDevice, models: Model[], random: (below: number) => number): void {
  const slot = random(SLOTS);
  const model = models[slot] as Model;
  const size = model.bytes.length;
  if (random(12) === 0) {
    const length = random(size + 1);
    device.truncate(slot, length);
    models[slot] = { bytes: model.bytes.slice(0, length), stored: Math.min(model.stored, length) };
    return;
  }
  const isGrowth = random(6) === 0;
  const length = isGrowth ? 4096 + random(300_000) : 1 + random([30, 3000, 70_000, 600_000][random(4)] as number);
  const at = isGrowth || random(3) > 0 ? (isGrowth ? size : model.stored) : random(size + 1);
  const bytes = new Uint8Array(length);
  if (!isGrowth) for (let i = 0; i < length; i++) bytes[i] = 1 + random(255);
  expect(device.write(slot, bytes, at)).toBe(length);
  const grown = new Uint8Array(Math.max(size, at + length));
  grown.set(model.bytes);
  grown.set(bytes, at);
  models[slot] = { bytes: grown, stored: isGrowth ? model.stored : Math.max(model.stored, at + length) };
}

function expectSame(device: SqlDevice, models: Model[], wasReopened: boolean): void {
  for (const [slot, model] of models.entries()) {
    const content = contentOf(device, slot);
    expect(Buffer.compare(content, model.bytes.subarray(0, content.length))).toBe(0);
    if (!wasReopened) expect(content.length).toBe(model.bytes.length);
    // Zeros at the end may come from growth, which a restart does not keep.
    expect(model.bytes.subarray(content.length).every((byte) => byte === 0)).toBe(true);
  }
}

test.each(Array.from({ length: 12 }, (_, i) => 4000 + i))(
  'slots hold what was written, and after a crash what turns before had written (seed %i)',
  { timeout: 60_000 },
  async (seed) => {
    const random = randomFrom(seed);
    const sql = new FakeSql();
    let device = deviceOn(sql);
    let models: Model[] = Array.from({ length: SLOTS }, () => ({ bytes: new Uint8Array(0), stored: 0 }));
    for (let turn = 0; turn < 40; turn++) {
      const before = models.map((model) => ({ ...model }));
      for (let i = random(6); i >= 0; i--) change(device, models, random);
      expectSame(device, models, false);
      if (random(4) === 0) {
        // In the middle of a turn: nothing of the turn is left, not even rows that were written before its end.
        if (random(2) === 0) await null;
        sql.crash();
        device.abort();
        models = before;
      } else {
        await sql.committed();
        if (random(2) === 0) continue;
        device.abort();
      }
      device = deviceOn(sql);
      expectSame(device, models, true);
      models = models.map(({ bytes }, slot) => {
        const size = device.size(slot);
        return { bytes: bytes.slice(0, size), stored: size };
      });
    }
  },
);

test('a small write is one row, whatever the slot contains already', { timeout: 60_000 }, async () => {
  const sql = new FakeSql();
  const device = deviceOn(sql);
  let at = 0;
  const record = new Uint8Array(120).fill(7);
  for (let turn = 0; turn < 5000; turn++) {
    device.write(0, record, at);
    at += record.length;
    await null;
  }
  await sql.committed();
  let commits = 0;
  const before = sql.rowsWritten;
  for (; commits < 1000; commits++) {
    device.write(0, record, at);
    at += record.length;
    await sql.committed();
  }
  // One more row where a write touches two chunks.
  expect(sql.rowsWritten - before).toBeLessThanOrEqual(1000 + Math.ceil((1000 * 120) / CHUNK_BYTES));
});

test('growth by zeros takes no rows, and bytes in it are where they were put', async () => {
  const sql = new FakeSql();
  const device = deviceOn(sql);
  device.write(1, new Uint8Array(3 * CHUNK_BYTES), 0);
  await sql.committed();
  expect([sql.rowsWritten, device.size(1)]).toEqual([0, 3 * CHUNK_BYTES]);
  device.write(1, Uint8Array.of(1, 2, 3), 2 * CHUNK_BYTES + 100);
  await sql.committed();
  expect(sql.rowsWritten).toBe(1);
  const again = deviceOn(sql);
  expect(again.size(1)).toBe(2 * CHUNK_BYTES + 103);
  expect(contentOf(again, 1).subarray(-5)).toEqual(Uint8Array.of(0, 0, 1, 2, 3));
});

// Such a row was ignored, so a later format could not keep this code away.
test('a row below 0 is of a later format, and refuses the store', async () => {
  const sql = new FakeSql();
  const { storage } = objectOn(sql);
  await (await storage.open('device', { lockTimeout: 0 })).closeAll();
  sql.exec(
    'INSERT OR REPLACE INTO "varve:device" (id, version, start, bytes) VALUES (?, ?, ?, ?)',
    -2,
    2,
    0,
    new Uint8Array(1),
  );
  for (let i = 0; i < 2; i++) {
    await expect(storage.open('device', { lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_VERSION' });
  }
});

test('no row is longer than the platform takes, and a long turn writes ahead', { timeout: 60_000 }, async () => {
  const sql = new FakeSql();
  const device = deviceOn(sql);
  device.write(0, new Uint8Array(9_000_000).fill(1), 0);
  expect(sql.rowsWritten).toBeGreaterThan(15);
  await sql.committed();
  expect(contentOf(deviceOn(sql), 0).every((byte) => byte === 1)).toBe(true);
});

// A write in place was cut short, too, once the slots had more bytes than `maxBytes`. So nothing could be deleted, and no room came back.
test('a device with more bytes than it may have takes writes in place, and grows by the room for deletes only', async () => {
  const sql = new FakeSql();
  const before = deviceOn(sql, 1e6);
  before.write(0, new Uint8Array(50_000).fill(1), 0);
  await before.closeAll();
  const device = deviceOn(sql, 40_000);
  expect(device.write(1, new Uint8Array(1e6).fill(4), 0)).toBe(256 * 1024);
  expect(device.write(0, new Uint8Array(100).fill(2), 0)).toBe(100);
  expect(device.write(0, new Uint8Array(100).fill(3), 49_950)).toBe(50);
  expect([device.size(0), device.size(1), device.write(2, new Uint8Array(100).fill(4), 0)]).toEqual([
    50_000,
    256 * 1024,
    0,
  ]);
  await device.closeAll();
  expect([...contentOf(deviceOn(sql), 0)].filter((_, at) => [99, 100, 49_949, 49_999].includes(at))).toEqual([
    2, 1, 1, 3,
  ]);
});

test('the gate is closed from the first write of a turn on, before anything is written', () => {
  const sql = new FakeSql();
  const device = deviceOn(sql);
  sql.crash();
  new ChunkTable(sql, 'device');
  sql.isGateClosed = false;
  device.gate.hold();
  expect([sql.isGateClosed, sql.rowsWritten]).toEqual([true, 0]);
});

test('a full device writes less than requested, and continues', () => {
  const device = deviceOn(new FakeSql(), 10_000);
  expect(device.write(0, new Uint8Array(8000).fill(1), 0)).toBe(8000);
  expect(device.write(1, new Uint8Array(3000).fill(1), 0)).toBe(2000);
  expect(device.write(1, new Uint8Array(1), 2000)).toBe(0);
  expect(() => device.truncate(1, 3000)).toThrow('maximum size');
  device.truncate(0, 0);
  expect(device.write(1, new Uint8Array(3000).fill(1), 0)).toBe(3000);
});

/** An object's storage; records what ends the object. */
function objectOn(sql: FakeSql) {
  const aborted: string[] = [];
  const ctx = { storage: { sql }, abort: (reason?: string) => void aborted.push(reason ?? '') };
  return { storage: new ObjectStorageAdapter(ctx), aborted };
}

test.each([1, 2, 3, 4])(
  'a store has exactly the turns that were committed (seed %i)',
  { timeout: 60_000 },
  async (seed) => {
    const random = randomFrom(seed);
    const sql = new FakeSql();
    const committed = new Map<number, Uint8Array>();
    let { storage } = objectOn(sql);
    let db = await sync.open<number, Uint8Array>('s', { storage, wasm, compactor: false, memoryBytes: 2 ** 20 });
    for (let turn = 0; turn < 100; turn++) {
      const writes = new Map<number, Uint8Array | undefined>();
      for (let i = random(30); i >= 0; i--) {
        const key = random(400);
        const value = random(5) === 0 ? undefined : new Uint8Array(random(4000)).fill(turn);
        if (value === undefined) db.delete(key);
        else db.set(key, value);
        expect(sql.isGateClosed).toBe(true);
        writes.set(key, value);
      }
      if (random(6) > 0) {
        await sql.committed();
        for (const [key, value] of writes) {
          if (value === undefined) committed.delete(key);
          else committed.set(key, value);
        }
        if (random(12) > 0) continue;
      } else if (random(2) === 0) {
        await null;
      }
      storage.abort();
      sql.crash();
      await db.close().catch(() => undefined);
      ({ storage } = objectOn(sql));
      db = await sync.open<number, Uint8Array>('s', { storage, wasm, compactor: false, memoryBytes: 2 ** 20 });
      expect([...db.keys()]).toEqual([...committed.keys()].sort((a, b) => a - b));
      for (const [key, value] of db) expect(Buffer.compare(value, committed.get(key) as Uint8Array)).toBe(0);
    }
    await db.close();
  },
);

test('rows that cannot be written end the object, and the store answers no more', async () => {
  const sql = new FakeSql();
  const { storage, aborted } = objectOn(sql);
  const db = await sync.open('s', { storage, wasm, compactor: false });
  db.set('kept', 1);
  await sql.committed();
  db.set('lost', 1);
  sql.failure = new Error('database or disk is full: SQLITE_FULL');
  await sql.committed();
  expect(aborted).toEqual([expect.stringContaining('SQLITE_FULL')]);
  sql.failure = undefined;
  expect(() => db.set('more', 1, { durability: 'strict' })).toThrow();
});

// Story: some of a turn's rows were written, the next one was refused, and `close` only rejected. The platform then kept the half turn.
test('rows that cannot be written at the end of a store end the object, too', async () => {
  const sql = new FakeSql();
  const { storage, aborted } = objectOn(sql);
  const device = await storage.open('s', { lockTimeout: 0 });
  device.write(0, Uint8Array.of(1), 0);
  sql.failure = new Error('database or disk is full: SQLITE_FULL');
  await expect(device.closeAll()).rejects.toThrow('SQLITE_FULL');
  expect(aborted).toEqual([expect.stringContaining('SQLITE_FULL')]);
});

test('stores of one object are separate, listed, deleted, and open once', async () => {
  const sql = new FakeSql();
  const { storage } = objectOn(sql);
  const other = objectOn(sql).storage;
  const names = ['b', 'a "quoted" name', 'varve:c'];
  for (const name of names) {
    const db = await sync.open(name, { storage, wasm, compactor: false });
    db.set('name', name);
    await expect(sync.open(name, { storage: other, wasm, lockTimeout: 20 })).rejects.toMatchObject({
      code: 'VARVE_LOCKED',
    });
    await expect(sync.deleteStore(name, { storage, lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    await db.close();
  }
  expect(await sync.listStores({ storage })).toEqual([...names].sort());
  expect(await sync.deleteStore('b', { storage })).toBe(true);
  expect(await sync.deleteStore('b', { storage })).toBe(false);
  const db = await sync.open(names[1] as string, { storage, wasm, compactor: false });
  expect([db.recovery.state, db.get('name')]).toEqual(['clean', names[1]]);
  await db.close();
});

// Story: an object has a store for each user. `Bob` and `bob` were one table, because SQLite ignores case, with two engines writing it.
test('stores whose names differ only in case are two stores of an object', async () => {
  const sql = new FakeSql();
  const { storage } = objectOn(sql);
  const options = { storage, wasm, compactor: false };
  const names = ['BOB', 'Bob', 'Straße/Ö', 'bob', 'con'];
  const stores = await Promise.all(names.map((name) => sync.open(name, options)));
  for (const [i, db] of stores.entries()) db.set('name', names[i]);
  for (const [i, db] of stores.entries()) {
    expect([db.count(), db.get('name')]).toEqual([1, names[i]]);
    await db.close();
  }
  expect(await sync.listStores({ storage })).toEqual(names);
  expect(await sync.deleteStore('Bob', { storage })).toBe(true);
  expect(await sync.listStores({ storage })).toEqual(names.filter((name) => name !== 'Bob'));
  sql.exec('CREATE TABLE IF NOT EXISTS "varve:Of the program"');
  expect(await sync.listStores({ storage })).not.toContain('Of the program');
});

test('an object without SQL storage gets an error that names it', async () => {
  const storage = {
    get sql(): FakeSql {
      throw new Error('not enabled');
    },
  };
  const adapter = new ObjectStorageAdapter({ storage, abort: () => undefined });
  await expect(sync.open('s', { storage: adapter, wasm })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
});
