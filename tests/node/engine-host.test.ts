/** An open store with everything around it, over OPFS in memory: locks, recovery, jobs beside the engine, full disks. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import type { EngineHostOptions } from '../../js/src/engine/host-parts.ts';
import { keySlots } from '../../js/src/engine/key-slots.ts';
import { VarveError } from '../../js/src/errors.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import { BufferedDevice } from '../../js/src/storage/buffered/device.ts';
import { type OutputGate, SlotError } from '../../js/src/storage/device.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import { OpfsDevice } from '../../js/src/storage/opfs.ts';
import { SyncStore } from '../../js/src/synchronous/store.ts';
import type { Key } from '../../js/src/types.ts';
import { EngineStore } from '../../js/src/wasm/store.ts';
import { LocalCompactor, wasm } from './support/engine.ts';
import { FakeChunks } from './support/fake-chunks.ts';
import { FakeDirectory, FakeHandle, type FakeOpfs, stubOpfs } from './support/fake-opfs.ts';

let opfs: FakeOpfs;
let compactors: LocalCompactor[];
const hosts: EngineHost[] = [];

beforeEach(() => {
  opfs = stubOpfs();
  compactors = [];
});

afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  opfs.quota = Number.POSITIVE_INFINITY;
  for (const host of hosts.splice(0)) await host.close();
  vi.unstubAllGlobals();
});

async function openHost(options: Partial<EngineHostOptions> = {}): Promise<EngineHost> {
  const host = await EngineHost.open('store', { keySlots, wasm, memoryBytes: 1024 * 1024, ...options });
  hosts.push(host);
  return host;
}

/** With a compactor on this thread. */
function withCompactor(): Partial<EngineHostOptions> {
  return {
    compactor: () => {
      const compactor = new LocalCompactor();
      compactors.push(compactor);
      return compactor as unknown as Worker;
    },
  };
}

function storeOf(host: EngineHost): SyncStore<Key, unknown> {
  return new SyncStore<Key, unknown>(host, {}, undefined);
}

/** Makes the next job flush what was written. */
function freeze({ store }: EngineHost): void {
  store.check(store.exports.varve_freeze(store.h));
}

const value = (n: number): string => `value ${n} `.repeat(20);

const MANY = 200;
/** Less than a memtable of 2 MiB. */
const FULL_SETS = 6000;
const STRICT = { durability: 'strict' } as const;

/** Sets large values in one turn, many or until one is refused; returns how many sets returned. */
function setUntilRefused(store: SyncStore<Key, unknown>, size: number): number {
  let returned = 0;
  try {
    for (; returned < MANY; returned++) store.set(returned, new Uint8Array(size));
  } catch {
    // This set is refused; the test asks about the sets before it.
  }
  return returned;
}

function expectAll(store: SyncStore<Key, unknown>, count: number): void {
  expect(Array.from({ length: count }, (_, n) => n).filter((n) => !store.has(n))).toEqual([]);
}

/** Writes `count` keys turn by turn, as a page would, so that jobs run beside the writing. */
async function fill(store: SyncStore<Key, unknown>, count: number, from = 0): Promise<void> {
  for (let n = from; n < from + count; n++) {
    store.set(n, value(n));
    if (n % 100 === 99) await nextTurn();
  }
}

function expectFilled(store: SyncStore<Key, unknown>, count: number): void {
  expect([...store.entries()]).toEqual(Array.from({ length: count }, (_, n) => [n, value(n)]));
}

/** The worker of a host ends: no part of it continues, and (with `power`) everything that was not flushed is lost. */
async function die(host: EngineHost, power = false): Promise<void> {
  await host.upkeep.idle();
  if (power) opfs.losePower();
  else opfs.killWorkers();
  vi.useRealTimers();
  stubOpfs(opfs);
  hosts.splice(hosts.indexOf(host), 1);
}

describe('recovery', () => {
  test('a new store is new, a closed one clean, a killed one replayed with everything written', async () => {
    const first = await openHost();
    expect(first.recovery.state).toBe('new');
    await fill(storeOf(first), 50);
    await first.close();

    const second = await openHost();
    expect(second.recovery.state).toBe('clean');
    const store = storeOf(second);
    expectFilled(store, 50);
    store.set('later', 1);
    store.commit();
    await die(second);

    const third = await openHost();
    expect(third.recovery.state).toBe('replayed');
    expect(storeOf(third).get('later')).toBe(1);
  });

  test('strict writes survive the loss of power', async () => {
    const host = await openHost();
    const store = storeOf(host);
    await fill(store, 20);
    store.set('strict', 1, { durability: 'strict' });
    await die(host, true);

    const again = storeOf(await openHost());
    expect(again.get('strict')).toBe(1);
    expect(again.get(0)).toBe(value(0));
  });

  test('a relaxed write is flushed within 100 ms', async () => {
    const host = await openHost();
    const store = storeOf(host);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    store.set('relaxed', 1);
    await Promise.resolve();
    vi.advanceTimersByTime(100);
    await die(host, true);
    expect(storeOf(await openHost()).get('relaxed')).toBe(1);
  });

  test('an opening of a closed store writes and flushes nothing, nor do its reads; its closing writes nothing', async () => {
    const first = await openHost();
    await fill(storeOf(first), 50);
    await first.close();

    const files = FakeHandle.prototype;
    const [write, truncate, flush] = [vi.spyOn(files, 'write'), vi.spyOn(files, 'truncate'), vi.spyOn(files, 'flush')];
    const second = await openHost();
    expectFilled(storeOf(second), 50);
    for (const call of [write, truncate, flush]) expect(call).not.toHaveBeenCalled();
    await second.close();
    for (const call of [write, truncate]) expect(call).not.toHaveBeenCalled();

    const third = await openHost();
    storeOf(third).set('later', 1);
    storeOf(third).commit();
    for (const call of [write, flush]) expect(call).toHaveBeenCalled();
  });

  // The story: every opening after a merge found its inputs in the headers of the slots, and wrote and flushed the manifest before it
  // deleted them again, in memory alone.
  test('an opening after a merge writes and flushes nothing', async () => {
    const first = await openHost();
    for (let merges = 0; merges < 2; merges++) {
      await fill(storeOf(first), 50);
      await storeOf(first).compact();
    }
    await first.upkeep.idle();
    await first.close();

    const files = FakeHandle.prototype;
    const calls = [vi.spyOn(files, 'write'), vi.spyOn(files, 'truncate'), vi.spyOn(files, 'flush')];
    const second = await openHost();
    for (const call of calls) expect(call).not.toHaveBeenCalled();
    expectFilled(storeOf(second), 50);
  });

  test('an idle store is sealed: killed then, it opens clean', async () => {
    const host = await openHost();
    const store = storeOf(host);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    store.set('a', 1, { durability: 'strict' });
    await Promise.resolve();
    vi.advanceTimersByTime(600);
    await die(host, true);
    const again = await openHost();
    expect(again.recovery.state).toBe('clean');
    expect(storeOf(again).get('a')).toBe(1);
  });

  // The story: a store of 18 MB took 1.36 times its data after ten seconds without a call: the room of the merge was given back last.
  test('an idle store frees the room of its last merge at once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const host = await openHost(withCompactor());
    const store = storeOf(host);
    const save = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) store.set(n, crypto.getRandomValues(new Uint8Array(1000)));
      store.commit();
      await nextTurn();
    };
    await save(2000);
    await store.compact();
    await save(300);
    freeze(host);
    await host.upkeep.idle();
    vi.advanceTimersByTime(3500);
    const before = host.stats();
    await host.upkeep.idle();
    const merged = host.stats();
    expect(merged.compaction.count).toBeGreaterThan(before.compaction.count);
    vi.advanceTimersByTime(251);
    const { bytes } = host.stats().disk;
    expect(bytes).toBeLessThan(merged.disk.bytes);
    vi.advanceTimersByTime(60_000);
    expect(host.stats().disk.bytes).toBe(bytes);
  });
});

describe('one holder', () => {
  test('a second open is VARVE_LOCKED after its wait, and gets in after a close', async () => {
    const first = await openHost();
    await expect(openHost({ lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    await expect(openHost({ lockTimeout: 5 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    const second = openHost({ lockTimeout: 5000 });
    await first.close();
    expect((await second).recovery.state).toBe('clean');
  });

  test('a signal ends the waiting', async () => {
    await openHost();
    const abort = new AbortController();
    const waiting = openHost({ signal: abort.signal });
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe.each([
  ['in slices', (): Partial<EngineHostOptions> => ({})],
  ['in a compactor', withCompactor],
])('jobs %s', (name, options) => {
  test('flush and compact what was written, and nothing is lost', async () => {
    const host = await openHost(options());
    const store = storeOf(host);
    await fill(store, 8000);
    await host.upkeep.idle();
    const stats = host.stats();
    expect(stats.flush.count).toBeGreaterThan(8);
    expect(stats.compaction.count).toBeGreaterThan(0);
    expectFilled(store, 8000);
    await store.close();
    expectFilled(storeOf(await openHost(options())), 8000);
    if (name === 'in a compactor') expect(compactors[0]?.received).toContain('input');
  });

  // When no separate slot is available for an output, the engine writes the output between the existing files.
  test('continue in a storage that gives no more files', async () => {
    const growing = vi.spyOn(OpfsDevice.prototype, 'grow').mockResolvedValue(0);
    const host = await openHost(options());
    const store = storeOf(host);
    for (let round = 0; round < 3; round++) await fill(store, 8000);
    await host.upkeep.idle();
    expect(host.stats().flush.count).toBeGreaterThan(8);
    expect(host.stats().compaction.count).toBeGreaterThan(0);
    expectFilled(store, 8000);
    await store.compact();
    expectFilled(store, 8000);
    await store.close();
    expectFilled(storeOf(await openHost(options())), 8000);
    expect(growing).toHaveBeenCalled();
  });

  /**
   * The story: in a full origin the browser refused to create the file for the output of a flush. The compactor was told that the engine had
   * stopped. So its worker was ended, the flush waited for up to a minute, and `compact()` rejected with VARVE_INTERNAL.
   */
  test('continue in a storage that refuses more files', async () => {
    const host = await openHost(options());
    const { getFileHandle } = FakeDirectory.prototype;
    const refuse = vi.fn(() => {
      throw new DOMException('No room.', 'QuotaExceededError');
    });
    vi.spyOn(FakeDirectory.prototype, 'getFileHandle').mockImplementation(async function (
      this: FakeDirectory,
      file,
      given,
    ) {
      return this.files.has(file) ? getFileHandle.call(this, file, given) : refuse();
    });
    const store = storeOf(host);
    for (let round = 0; round < 3; round++) await fill(store, 8000);
    await store.compact();
    expectFilled(store, 8000);
    expect(refuse).toHaveBeenCalled();
    expect(compactors.length).toBeLessThan(2);
  });

  test('closing while a job runs loses nothing', async () => {
    const host = await openHost(options());
    const store = storeOf(host);
    await fill(store, 3000);
    const closing = store.close();
    await closing;
    opfs.killWorkers();
    expectFilled(storeOf(await openHost(options())), 3000);
  });
});

/** So many values of 1 KB are 60 MB. */
const IN_ONE_TURN = 60_000;
const kilobyte = (n: number): Uint8Array => new Uint8Array(1000).fill(n % 251);

function expectKilobytes(store: SyncStore<Key, unknown>): void {
  let count = 0;
  for (const [key, found] of store.entries()) {
    if (key !== count || Buffer.compare(found as Uint8Array, kilobyte(count)) !== 0) break;
    count++;
  }
  expect(count).toBe(IN_ONE_TURN);
}

// No file can be created inside a turn: everything that the turn writes must go into the existing files.
test('one turn writes as much as it likes, and all of it is there', async () => {
  const store = storeOf(await openHost());
  for (let n = 0; n < IN_ONE_TURN; n++) store.set(n, kilobyte(n));
  expectKilobytes(store);
  await store.close();
  expectKilobytes(storeOf(await openHost()));
}, 60_000);

describe('a full disk', () => {
  test.each(['throw', 'short'] as const)(
    'fails a job (%s), not the engine; the job is done once there is room',
    async (style) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const host = await openHost({ ...withCompactor(), memoryBytes: 16 << 20 });
      const store = storeOf(host);
      opfs.fullStyle = style;
      // More than fits between and behind the existing files, and more than is reserved for deletes.
      for (let n = 0; n < FULL_SETS; n++) store.set(n, value(n));
      store.commit();
      freeze(host);
      opfs.quota = opfs.used() + 4096;
      await host.upkeep.idle();
      expect(host.stats().flush.count).toBe(0);
      expectFilled(store, FULL_SETS);

      opfs.quota = Number.POSITIVE_INFINITY;
      await vi.advanceTimersByTimeAsync(60_000);
      await host.upkeep.idle();
      expect(host.stats().flush.count).toBeGreaterThan(0);
      expectFilled(store, FULL_SETS);
    },
  );

  test('refuses sets of the synchronous store, but accepts its deletes', async () => {
    const host = await openHost();
    const store = storeOf(host);
    for (let n = 0; n < 200; n++) store.set(n, value(n));
    store.flush();
    opfs.quota = opfs.used();
    expect(() => {
      for (let n = 200; n < 3000; n++) store.set(n, value(n), { durability: 'relaxed' });
    }).toThrow(expect.objectContaining({ code: 'VARVE_STORAGE_FULL' }));
    const kept = [...store.keys()].length;
    for (let n = 0; n < 100; n++) store.delete(n);
    await nextTurn();
    store.deleteRange({ gte: 100, lt: 150 }, { durability: 'strict' });
    expect([...store.keys({ limit: 1 })]).toEqual([150]);
    await store.close();
    expect([...storeOf(await openHost()).keys()]).toHaveLength(kept - 150);
  });

  test('shows how much a compaction lacks, which continues when there is room', async () => {
    const host = await openHost();
    const store = storeOf(host);
    const bytes = (n: number): Uint8Array => crypto.getRandomValues(new Uint8Array(64 << 10)).fill(n, 0, 8);
    for (let n = 0; n < 100; n++) store.set(n, bytes(n));
    store.flush();
    opfs.quota = opfs.used() + 4096;
    const refused = await host.compact().then(() => undefined, String);
    expect(refused).toMatch(/lacks up to [1-7] MiB.*Nothing is lost/);
    opfs.quota = Number.POSITIVE_INFINITY;
    await host.compact();
    expect([...store.keys()]).toHaveLength(100);
  });

  // The story: a large write is logged by itself. Once such a write was refused, and its caller got the error, but the store ended all
  // the same.
  test('refuses a large write and nothing else', async () => {
    const store = storeOf(await openHost());
    store.set('small', 1, STRICT);
    opfs.quota = opfs.used();
    const large = (n: number): Uint8Array => new Uint8Array(100 << 10).fill(n);
    let taken = 0;
    const fill = (): void => {
      for (; taken < 200; taken++) store.set(taken, large(taken));
    };
    expect(fill).toThrow(expect.objectContaining({ code: 'VARVE_STORAGE_FULL' }));
    expect(fill, 'and says so again').toThrow(expect.objectContaining({ code: 'VARVE_STORAGE_FULL' }));
    expect([store.get('small'), [...store.keys({ lt: 'a' })].length]).toEqual([1, taken]);
    store.delete('small', STRICT);
    opfs.quota = Number.POSITIVE_INFINITY;
    store.set('more', 2, STRICT);
    await store.close();
    expect(storeOf(await openHost()).get('more')).toBe(2);
  });

  // A batch also counts as deletes when all of it only deletes: ranges and conditional deletes go that way.
  test.each([
    ['a range', (store: SyncStore<Key, unknown>) => store.deleteRange({ gte: 0, lt: 100 }, STRICT)],
    ['a batch', (store: SyncStore<Key, unknown>) => store.batch().delete(0).delete(1).commit(STRICT)],
    ['a condition', (store) => store.delete(0, { ...STRICT, ifSequence: store.getEntry(0)?.sequence ?? null })],
  ] as [string, (store: SyncStore<Key, unknown>) => unknown][])('takes deletes as %s', async (_, remove) => {
    const store = storeOf(await openHost());
    for (let n = 0; n < 200; n++) store.set(n, value(n));
    store.flush();
    opfs.quota = opfs.used();
    expect(() => {
      for (let n = 200; n < 3000; n++) store.set(n, value(n), { durability: 'relaxed' });
    }).toThrow(expect.objectContaining({ code: 'VARVE_STORAGE_FULL' }));
    remove(store);
    expect(store.has(0)).toBe(false);
    expect(() => store.set('another', value(0), STRICT)).toThrow();
    await store.close();
    expect(storeOf(await openHost()).has(0)).toBe(false);
  });

  test('a refused write fails when it is made, and nothing else fails', async () => {
    const store = storeOf(await openHost());
    for (let n = 0; n < 200; n++) store.set(n, value(n));
    store.flush();
    opfs.quota = opfs.used();
    const full = expect.objectContaining({ code: 'VARVE_STORAGE_FULL' });
    let sets = 0;
    expect(() => {
      for (; sets < 3000; sets++) {
        store.set(`more ${sets}`, value(sets));
        store.commit();
      }
    }).toThrow(full);
    expect(() => store.set('buffered', value(1))).toThrow(full);
    store.commit();
    expect(() => store.set('strict', value(1), STRICT)).toThrow(full);
    expect([store.has('buffered'), store.has('strict'), store.get(7)]).toEqual([false, false, value(7)]);
  });

  // Closing was once refused for want of room, and a write was lost with it that had returned as buffered.
  test('a store that is closed in the turn of a buffered write keeps it, however full the storage is', async () => {
    const store = storeOf(await openHost());
    store.set('kept', 1);
    store.commit();
    opfs.quota = opfs.used();
    const kept = ['kept'];
    expect(() => {
      for (let n = 0; n < 3000; n++) {
        store.set(`filler ${n}`, value(n));
        kept.push(`filler ${n}`);
      }
    }).toThrow(expect.objectContaining({ code: 'VARVE_STORAGE_FULL' }));
    await store.close();
    hosts.pop();
    opfs.quota = Number.POSITIVE_INFINITY;
    const again = storeOf(await openHost());
    expect([...again.keys()].sort()).toEqual(kept.sort());
    await again.close();
  });

  // A write that had returned as buffered was once lost with the write that used up the room, and every later call was VARVE_POISONED.
  test('deferred writes on a full storage are logged or refused at once, and the store continues', async () => {
    const store = storeOf(await openHost());
    store.set('kept', 1);
    store.commit();
    opfs.quota = opfs.used();
    let sets = 0;
    expect(() => {
      for (; sets < 3000; sets++) store.set(sets, value(sets));
    }).toThrow(expect.objectContaining({ code: 'VARVE_STORAGE_FULL' }));
    await nextTurn();
    expect(store.get('kept')).toBe(1);
    store.delete(0);
    await nextTurn();
    const kept = Array.from({ length: sets - 1 }, (_, n) => n + 1);
    expect([...store.keys()]).toEqual(['kept', ...kept]);
    await store.close();
    hosts.pop();
    opfs.quota = Number.POSITIVE_INFINITY;
    expect([...storeOf(await openHost()).keys()]).toEqual(['kept', ...kept]);
  });

  // Small writes of the same turn lay before the large one that was refused.
  test('a large write that is refused does not undo a small one of its turn', async () => {
    const store = storeOf(await openHost());
    const kept: number[] = [];
    opfs.quota = opfs.used() + 300_000;
    let refused = 0;
    for (let turn = 0; turn < 60; turn++) {
      for (let n = turn * 10; n < turn * 10 + 5; n++) {
        try {
          store.set(n, value(n));
          kept.push(n);
        } catch (error) {
          expect(error).toMatchObject({ code: 'VARVE_STORAGE_FULL' });
        }
      }
      try {
        store.set(turn * 10 + 5, new Uint8Array(70_000));
        kept.push(turn * 10 + 5);
      } catch (error) {
        expect(error).toMatchObject({ code: 'VARVE_STORAGE_FULL' });
        refused++;
      }
      await nextTurn();
      expect([...store.keys()]).toEqual(kept);
    }
    expect(refused).toBeGreaterThan(10);
    await store.close();
    hosts.pop();
    opfs.quota = Number.POSITIVE_INFINITY;
    expect([...storeOf(await openHost()).keys()]).toEqual(kept);
  });

  // A rotation logs what is pending. A refusal there once lost writes that had returned as buffered: the set that met it got the error,
  // and they did not. (Once in four runs of the browser's quota test.)
  test.each([9000, 16_000, 23_000, 30_000, 37_000, 44_000, 51_000, 58_000])(
    'writes that returned as buffered are there whatever was refused after them (of %i bytes)',
    async (size) => {
      let refused = 0;
      for (let room = 40_000; room < 400_000; room += 24_000) {
        opfs.quota = Number.POSITIVE_INFINITY;
        const store = storeOf(await openHost());
        store.clear();
        // The store before left the disk full: files for the flush have to be opened first.
        await nextTurn();
        store.flush();
        opfs.quota = opfs.used() + room;
        const returned = setUntilRefused(store, size);
        if (returned < MANY) refused++;
        expectAll(store, returned);
        await store.close();
      }
      expect(refused).toBeGreaterThan(9);
    },
  );
});

test('a store that is only read begins no job for a while', async () => {
  const first = storeOf(await openHost());
  for (let n = 0; n < 20; n++) first.set(n, n);
  await first.close();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const host = await openHost(withCompactor());
  expect(storeOf(host).get(7)).toBe(7);
  host.upkeep.afterTurn();
  expect([compactors.length, host.upkeep.isDue()]).toEqual([0, true]);
  await vi.advanceTimersByTimeAsync(200);
  expect(compactors).toHaveLength(1);
});

test('a host that goes back starts no job before the clients of the former leader are back', async () => {
  const chunks = new FakeChunks();
  let back = (): void => undefined;
  const hold = (): Promise<void> =>
    new Promise((resolve) => {
      back = resolve;
    });
  const device = await BufferedDevice.open(chunks);
  const host = await openHost({ device, hold });
  const failed = new Promise((resolve) => {
    device.onFailure = resolve;
  });
  chunks.failure = new SlotError('full', 'There is no room.');
  storeOf(host).set(1, value(1));
  await failed;
  chunks.failure = undefined;
  const next = await host.goBack(new VarveError('VARVE_STORAGE_FULL', 'The storage is full.'));
  hosts.push(next);
  storeOf(next).set(2, value(2));
  await expect.poll(() => device.isQuiet).toBe(false);
  freeze(next);
  const taken = vi.spyOn(EngineStore.prototype, 'takeJob');
  next.upkeep.afterTurn();
  expect(taken).not.toHaveBeenCalled();
  back();
  await expect.poll(() => taken.mock.calls.length).toBeGreaterThan(0);
});

test('a host whose engine has a fault shuts down without waiting for a slot that is being created', async () => {
  const device = new MemoryDevice();
  const host = await openHost({ device });
  vi.spyOn(EngineStore.prototype, 'wantedSlots').mockReturnValue(1);
  const grown = vi.spyOn(device, 'grow').mockReturnValue(new Promise(() => undefined));
  host.upkeep.afterTurn();
  expect(grown).toHaveBeenCalledOnce();
  host.store.fault.of(new Error('stopped'));
  await host.close();
});

test('a storage of unknown room is not treated as a full one after a write was refused', async () => {
  const host = await openHost({ device: await BufferedDevice.open(new FakeChunks()) });
  const setRoom = vi.spyOn(EngineStore.prototype, 'setRoom');
  await host.upkeep.makeRoom(0, 0);
  expect(setRoom).not.toHaveBeenCalled();
});

test('the host asks how much room there is a moment after a store is opened', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let asked = 0;
  const asks = (device: MemoryDevice): MemoryDevice =>
    Object.assign(device, {
      freeBytes: async () => {
        asked++;
        return 2 ** 30;
      },
    });
  await openHost({ device: asks(new MemoryDevice()) });
  expect(asked).toBe(0);
  await vi.advanceTimersByTimeAsync(10);
  expect(asked).toBe(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(asked).toBe(1);
  const gate: OutputGate = { hold: () => undefined, fail: () => undefined };
  await openHost({ device: Object.assign(asks(new MemoryDevice()), { gate }), onTurn: () => undefined });
  expect(asked).toBe(2);
});

test('the job of a compactor that ended fails, and the next compactor does it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const host = await openHost(withCompactor());
  const store = storeOf(host);
  for (let n = 0; n < 100; n++) store.set(n, value(n));
  freeze(host);
  host.upkeep.afterTurn();
  const died = new Event('error');
  compactors[0]?.dispatchEvent(died);
  await host.upkeep.idle();
  expect(host.stats().flush.count).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  await host.upkeep.idle();
  expect(compactors).toHaveLength(2);
  expect(host.stats().flush.count).toBe(1);
  expectFilled(store, 100);
});
