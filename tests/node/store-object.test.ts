// The life of an object with a store, without the platform: constructed, used, gone without notice, constructed again.

import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { StoreObject, type VarveObjectOptions } from '../../js/src/cloudflare/object.ts';
import type { ObjectContext, ObjectStorage } from '../../js/src/cloudflare/platform.ts';
import { unwrap } from '../../js/src/cloudflare/rpc.ts';
import { serve } from '../../js/src/cloudflare/serve.ts';
import { Upkeep } from '../../js/src/engine/upkeep.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { FakeSql } from './support/fake-sql.ts';
import { alive, made } from './support/instances.ts';

vi.mock('../../js/src/wasm/instantiate.ts', async (load) =>
  (await import('./support/instances.ts')).counting(await load()),
);

const module = new WebAssembly.Module(readFileSync(wasm));

afterEach(() => {
  vi.restoreAllMocks();
});

/** The storage of an object, with an alarm that fires when the test asks for it. */
class FakeStorage implements ObjectStorage {
  readonly sql = new FakeSql();
  alarm: number | null = null;

  async getAlarm(): Promise<number | null> {
    return this.alarm;
  }

  async setAlarm(time: number | Date): Promise<void> {
    this.alarm = Number(time);
  }
}

/** The arguments that construct an object. */
class FakeContext implements ObjectContext {
  readonly id: { toString(): string };
  readonly storage: FakeStorage;
  opened: Promise<unknown> = Promise.resolve();
  aborted = '';

  constructor(id: string, storage = new FakeStorage()) {
    this.id = { toString: () => id };
    this.storage = storage;
  }

  blockConcurrencyWhile<T>(callback: () => Promise<T>): Promise<T> {
    const opened = callback();
    this.opened = opened;
    return opened;
  }

  abort(reason = ''): void {
    this.aborted = reason;
  }
}

class Notes extends StoreObject {
  get notes() {
    return this.store;
  }

  /** Fires the alarm as the platform does: the alarm is no longer set when it fires. */
  async ring(storage: FakeStorage): Promise<void> {
    storage.alarm = null;
    await this.alarm();
  }
}

/** Objects that the platform has not evicted. */
const living = new Set<Notes>();

/** An object that the platform evicts, together with its context. */
async function constructBriefly(ctx: FakeContext, options: VarveObjectOptions = {}): Promise<Notes> {
  const notes = new Notes(ctx, {}, { wasm: module, ...options });
  await ctx.opened;
  return notes;
}

async function construct(ctx: FakeContext, options: VarveObjectOptions = {}): Promise<Notes> {
  const notes = await constructBriefly(ctx, options);
  living.add(notes);
  return notes;
}

test('an object that is evicted without notice has a successor, and its engine is released', {
  timeout: 60_000,
}, async () => {
  const storage = new FakeStorage();
  for (let round = 0; round < 40; round++) {
    const { notes } = await constructBriefly(new FakeContext('evicted', storage), { memoryBytes: 2 ** 20 });
    expect(notes.count()).toBe(Math.min(round, 10));
    notes.set(round % 10, new Uint8Array(100_000).fill(round));
    await storage.sql.committed();
  }
  expect(made()).toBe(40);
  await vi.waitFor(async () => expect(await alive()).toBeLessThan(4), { timeout: 20_000 });
});

test('objects that are evicted without notice and have no successor are released', { timeout: 60_000 }, async () => {
  const before = await alive();
  for (let one = 0; one < 10; one++) await constructBriefly(new FakeContext(`alone ${one}`), { memoryBytes: 2 ** 20 });
  await vi.waitFor(async () => expect(await alive()).toBeLessThan(before + 4), { timeout: 20_000 });
});

test('a predecessor writes nothing any more', { timeout: 60_000 }, async () => {
  const storage = new FakeStorage();
  const first = await construct(new FakeContext('twice', storage));
  const view = first.notes.at(['a']);
  view.set('below', 1);
  first.notes.set('a', 1);
  await storage.sql.committed();
  const second = await construct(new FakeContext('twice', storage));
  expect(() => first.notes.set('b', 2)).toThrow();
  expect(() => view.set('b', 2)).toThrow();
  await storage.sql.committed();
  second.notes.set('c', 3);
  expect([...second.notes]).toEqual([
    ['a', 1],
    ['c', 3],
    [['a', 'below'], 1],
  ]);
});

test('the alarm is set when a flush is due, works until nothing is, and is left unset', {
  timeout: 60_000,
}, async () => {
  const ctx = new FakeContext('alarm');
  const { storage } = ctx;
  const object = await construct(ctx, { memoryBytes: 2 ** 20 });
  let rings = 0;
  for (let i = 0; i < 3000; i++) {
    object.notes.set((i * 7919) % 3000, new Uint8Array(1000).fill(i));
    if (i % 10 === 9) await storage.sql.committed();
    if (storage.alarm === null) continue;
    rings++;
    await object.ring(storage);
    expect(object.notes.stats().memtable.frozen).toBe(0);
  }
  await storage.sql.committed();
  if (storage.alarm !== null) await object.ring(storage);
  expect(rings).toBeGreaterThan(2);
  expect(storage.alarm).toBe(null);
  expect(object.notes.stats().flush.count).toBeGreaterThanOrEqual(rings);
  expect(object.notes.count()).toBe(3000);
});

// The end of Varve's alarm moved an alarm that the program had set for tomorrow.
test('an alarm that the program sets while the alarm runs stays', { timeout: 60_000 }, async () => {
  const ctx = new FakeContext('alarms');
  const { storage } = ctx;
  const object = await construct(ctx, { memoryBytes: 2 ** 20 });
  const slice = vi.spyOn(Upkeep.prototype, 'slice').mockReturnValue(true);
  const tomorrow = Date.now() + 86_400_000;
  const ringing = object.ring(storage);
  await storage.setAlarm(tomorrow);
  await ringing;
  expect(storage.alarm).toBe(tomorrow);
  await object.ring(storage);
  expect(storage.alarm).toBeLessThan(tomorrow);
  slice.mockRestore();
});

// Story: a method writes, then sets the program's alarm if there is none. The turn of the write ended while the method asked for the alarm,
// and left a flush due. Varve asked, too, got the same answer, and put its own alarm in the place of the one that was just set.
test('an alarm that a method sets when a turn leaves a job due stays', async () => {
  const ctx = new FakeContext('due');
  const { storage } = ctx;
  const object = await construct(ctx);
  vi.spyOn(Upkeep.prototype, 'isDue').mockReturnValue(true);
  const tomorrow = Date.now() + 86_400_000;
  object.notes.set('a', 1);
  if ((await storage.getAlarm()) === null) await storage.setAlarm(tomorrow);
  await storage.sql.committed();
  await nextTurn();
  expect(storage.alarm).toBe(tomorrow);
});

// Story: a program deletes its alarm, or moves the one that it found set, which was Varve's. Nothing was flushed or merged until the object
// was constructed again.
test('an alarm that the program deletes is set again while a job is due, within about a second', async () => {
  const ctx = new FakeContext('deleted');
  const { storage } = ctx;
  const object = await construct(ctx);
  vi.spyOn(Upkeep.prototype, 'isDue').mockReturnValue(true);
  const asked = vi.spyOn(storage, 'getAlarm');
  const clock = vi.spyOn(Date, 'now');
  const turn = async (ms: number): Promise<number | null> => {
    clock.mockReturnValue(ms);
    object.notes.set('a', ms);
    await storage.sql.committed();
    await nextTurn();
    return storage.alarm;
  };
  const start = 1e13;
  expect(await turn(start)).toBe(start);
  storage.alarm = null;
  for (let ms = 100; ms < 1000; ms += 100) expect(await turn(start + ms)).toBe(null);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(await turn(start + 1000)).toBe(start + 1000);
});

test('on a full storage no turn is lost that was neither refused nor ended the object', {
  timeout: 60_000,
}, async () => {
  const ctx = new FakeContext('full');
  const { notes } = await construct(ctx, { memoryBytes: 2 ** 20, maxBytes: 1_500_000 });
  let kept = 0;
  const refused = (): boolean => {
    try {
      notes.set(kept, new Uint8Array(20_000));
      return false;
    } catch (error) {
      expect(error).toMatchObject({ code: 'VARVE_STORAGE_FULL' });
      return true;
    }
  };
  while (kept < 500) {
    const wasRefused = refused();
    await ctx.storage.sql.committed();
    if (wasRefused || ctx.aborted !== '') break;
    kept++;
  }
  expect(kept).toBeGreaterThan(20);
  expect(kept).toBeLessThan(80);
  const again = await construct(new FakeContext('full', ctx.storage), { memoryBytes: 2 ** 20 });
  expect([...again.notes.keys()]).toEqual(Array.from({ length: kept }, (_, i) => i));
});

// Story: an object's `maxBytes` is lowered below the size of its store. Nothing could be deleted any more, so it stayed full for ever.
test('a store with more bytes than a lowered maxBytes refuses sets and takes deletes', {
  timeout: 60_000,
}, async () => {
  const ctx = new FakeContext('lowered');
  const { notes } = await construct(ctx, { memoryBytes: 2 ** 20 });
  for (let i = 0; i < 60; i++) {
    notes.set(i, new Uint8Array(20_000).fill(i));
    await ctx.storage.sql.committed();
  }
  const again = await construct(new FakeContext('lowered', ctx.storage), { memoryBytes: 2 ** 20, maxBytes: 500_000 });
  expect(() => again.notes.set(60, new Uint8Array(20_000))).toThrow(
    expect.objectContaining({ code: 'VARVE_STORAGE_FULL' }),
  );
  for (let i = 0; i < 60; i += 2) {
    again.notes.delete(i);
    await ctx.storage.sql.committed();
  }
  const last = await construct(new FakeContext('lowered', ctx.storage), { memoryBytes: 2 ** 20 });
  expect([...last.notes.keys()]).toEqual(Array.from({ length: 30 }, (_, i) => 2 * i + 1));
});

test('a gate that could not be closed is closed by the next write, which logs what was staged', async () => {
  const ctx = new FakeContext('gate');
  const { notes } = await construct(ctx);
  await ctx.storage.sql.committed();
  ctx.storage.sql.failure = new Error('not now');
  expect(() => notes.set('a', 1)).toThrow();
  ctx.storage.sql.failure = undefined;
  expect(ctx.aborted).toBe('');
  notes.set('b', 2);
  expect(ctx.storage.sql.isGateClosed).toBe(true);
  await ctx.storage.sql.committed();
  const again = await construct(new FakeContext('gate', ctx.storage));
  expect(again.notes.get('b')).toBe(2);
});

test('after an alarm that failed there is another one', { timeout: 60_000 }, async () => {
  const ctx = new FakeContext('alarm');
  const { storage } = ctx;
  const object = await construct(ctx, { memoryBytes: 2 ** 20 });
  const fill = async (from: number): Promise<void> => {
    for (let i = from; storage.alarm === null && i < from + 3000; i++) {
      object.notes.set(i, new Uint8Array(1000).fill(i));
      if (i % 10 === 9) await storage.sql.committed();
    }
    expect(storage.alarm).not.toBe(null);
  };
  await fill(0);
  const slice = vi.spyOn(Upkeep.prototype, 'slice').mockImplementation(() => {
    throw new Error('no slice');
  });
  await expect(object.ring(storage)).rejects.toThrow('no slice');
  slice.mockRestore();
  await fill(3000);
  await object.ring(storage);
  expect(object.notes.stats().memtable.frozen).toBe(0);
});

test('a page contains values that are large, or refer to themselves', async () => {
  const { notes } = await construct(new FakeContext('page'));
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  notes.set(0, cyclic);
  for (let i = 1; i < 60; i++) notes.set(i, new Map([[i, new Set(['x'.repeat(50_000)])]]));
  const page = unwrap(serve(notes, { call: 'page', range: {}, values: true })) as { keys: Key[]; isLast: boolean };
  expect(page.keys.length).toBeGreaterThan(1);
  expect(page.keys.length).toBeLessThan(30);
  expect(page.isLast).toBe(false);
});

test('an option that an object does not have is refused, and so are options that are no object', () => {
  const construct = (options: unknown) => () =>
    new Notes(new FakeContext('strange'), {}, options as VarveObjectOptions);
  expect(construct({ wasm: module, historyBytes: 0 })).toThrow(
    'There is no option historyBytes here; there is name, memoryBytes,',
  );
  for (const options of [null, 5]) {
    const message = `Options are an object, not ${options}.`;
    expect(construct(options)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT', message }));
  }
});

test('the error of an object without the engine names what is missing', { timeout: 60_000 }, async () => {
  const ctx = new FakeContext('bare');
  new Notes(ctx, {});
  await expect(ctx.opened).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
});

// Story: a class overwrote the bytes of its key behind `super(...)`. The platform opens the store later, so the key was 32 zeros.
test('the key of an encrypted store is the one that the constructor was given', { timeout: 60_000 }, async () => {
  class LaterContext extends FakeContext {
    override blockConcurrencyWhile<T>(callback: () => Promise<T>): Promise<T> {
      return super.blockConcurrencyWhile(() => nextTurn().then(callback));
    }
  }
  const storage = new FakeStorage();
  const openWith = async (key: Uint8Array): Promise<Notes> => {
    const ctx = new LaterContext('encrypted', storage);
    const notes = new Notes(ctx, {}, { wasm: module, encryption: { key } });
    key.fill(0);
    await ctx.opened;
    living.add(notes);
    return notes;
  };
  const secret = crypto.getRandomValues(new Uint8Array(32));
  (await openWith(secret.slice())).notes.set('a', 1);
  await storage.sql.committed();
  await expect(openWith(new Uint8Array(32))).rejects.toMatchObject({ code: 'VARVE_KEY' });
  expect((await openWith(secret)).notes.get('a')).toBe(1);
});

test('an upgrade reads all that the object has, and writes', async () => {
  const ctx = new FakeContext('upgraded');
  const before = await constructBriefly(ctx, { version: 1 });
  before.notes.setMany([
    ['a', 1],
    ['b', 2],
  ]);
  await ctx.storage.sql.committed();
  const seen: unknown[] = [];
  const after = await constructBriefly(new FakeContext('upgraded', ctx.storage), {
    version: 2,
    upgrade: (tx) => {
      for (const [key, value] of tx.entries()) tx.set(key, (value as number) + 1);
      seen.push([...tx.values({ reverse: true })], tx.count());
    },
  });
  expect(seen).toStrictEqual([[3, 2], 2]);
  expect([...after.notes.values()]).toStrictEqual([2, 3]);
});
