/** The asynchronous store over a real engine: the client's frames and messages against the server that answers them. */

import { beforeEach, expect, test, vi } from 'vitest';
import type { Port } from '../../js/src/client/client.ts';
import type { EngineHost } from '../../js/src/engine/engine-host.ts';
import { ImmediateRunner } from '../../js/src/engine/frame-runner.ts';
import { EngineServer, type Incoming } from '../../js/src/server/engine-server.ts';
import { codeHere } from '../../js/src/server/later-code.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { randomFrom, spawnServer, wasm } from './support/engine.ts';
import { type FakeOpfs, stubOpfs } from './support/fake-opfs.ts';
import { closedAfterTest } from './support/stores.ts';

let opfs: FakeOpfs;

beforeEach(() => {
  opfs = stubOpfs();
});

async function openTest(options: OpenOptions<Key, unknown> = {}): Promise<Store<Key, unknown>> {
  return closedAfterTest(
    await openStore<Key, unknown>('test', { wasm, memoryBytes: 1024 * 1024, ...options }, spawnServer),
  );
}

test.each(['memory', 'opfs'] as const)(
  'writes that are faster than flushes all arrive and read back, in %s',
  async (storage) => {
    const store = await openTest({ storage });
    const random = randomFrom(7);
    const expected = new Map<string, number>();
    for (let round = 0; round < 60; round++) {
      const writes: Promise<unknown>[] = [];
      for (let i = 0; i < 200; i++) {
        const key = `key${String(random(5000)).padStart(6, '0')}`;
        const n = random(1e9);
        expected.set(key, n);
        writes.push(store.set(key, { n, text: 'sediment '.repeat(20) }));
      }
      await Promise.all(writes);
    }
    const found: [Key, number][] = [];
    for await (const [key, value] of store.entries()) found.push([key, (value as { n: number }).n]);
    expect(found).toEqual([...expected].sort(([a], [b]) => (a < b ? -1 : 1)));
    const stats = await store.stats();
    expect(stats.flush.count).toBeGreaterThan(5);
    expect(store.storage).toEqual({ kind: storage });
  },
  60_000,
);

test('operations of one turn see each other and come back in order', async () => {
  const store = await openTest({ storage: 'memory' });
  const [first, one, gone, none, many] = await Promise.all([
    store.set('a', 1),
    store.get('a'),
    store.delete('a'),
    store.get('a'),
    store.getMany(['a', 'b']),
  ]);
  expect([first.sequence, one, gone.sequence, none, many]).toEqual([1, 1, 2, undefined, [undefined, undefined]]);
});

test('messages copy short frames and transfer long ones, in both directions', async () => {
  const sent: [from: string, isLong: boolean, isTransferred: boolean][] = [];
  const note = (from: string, data: unknown, transfer: object[]): void => {
    if (data instanceof ArrayBuffer) sent.push([from, data.byteLength > 1536, transfer.includes(data)]);
  };
  const port: Port = {
    onmessage: null,
    postMessage: (data, transfer) => {
      note('client', data, transfer);
      server.receive(structuredClone(data, { transfer: transfer as ArrayBuffer[] }) as Incoming);
    },
  };
  const server = new EngineServer(
    (data, transfer) => {
      note('engine', data, transfer);
      setImmediate(() => port.onmessage?.(new MessageEvent('message', { data })));
    },
    undefined,
    undefined,
    codeHere,
  );
  const store = await openStore<Key, Uint8Array>('frames', { wasm, storage: 'memory' }, () => port);
  await store.set('a', new Uint8Array(1024));
  await store.set('b', new Uint8Array(2000));
  expect((await store.get('b'))?.length).toBe(2000);
  await store.close();
  expect(sent).toEqual([
    ['client', false, false],
    ['engine', false, false],
    ['client', true, true],
    ['engine', false, false],
    ['client', false, false],
    ['engine', true, true],
  ]);
});

test('compact reports its progress, and the store answers meanwhile', async () => {
  const store = await openTest();
  const random = randomFrom(7);
  const value = (n: number): string => `value ${n} ${random(2 ** 32)}`.repeat(8);
  for (let from = 0; from < 40_000; from += 1000) {
    await store.setMany(Array.from({ length: 1000 }, (_, n): [Key, unknown] => [from + n, value(from + n)]));
  }
  const seen: number[] = [];
  let compacted = false;
  const compacting = store
    .compact({ onProgress: ({ done, total }) => seen.push(done / total) })
    .then(() => (compacted = true));
  expect(await store.has(39_999)).toBe(true);
  expect(compacted).toBe(false);
  await compacting;
  expect(seen.at(-1)).toBe(1);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  const { levels, compaction } = await store.stats();
  expect(levels.filter((level) => level.tables > 0)).toHaveLength(1);
  expect(compaction.running).toBe(false);
});

test('a store closed and opened again is clean and whole', async () => {
  const store = await openTest();
  await store.setMany(Array.from({ length: 500 }, (_, n): [Key, unknown] => [n, `value ${n}`]));
  await store.compact();
  await store.set('after', new Date(5));
  await store.close();
  const again = await openTest();
  expect(again.recovery.state).toBe('clean');
  expect(await again.get(499)).toBe('value 499');
  expect(await again.get('after')).toEqual(new Date(5));
});

test('a second client of the same store gets VARVE_LOCKED', async () => {
  await openTest();
  await expect(openTest({ lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
});

test('on a full disk sets are refused, deletes still commit, and nothing acknowledged is lost', async () => {
  const store = await openTest();
  const value = new Uint8Array(2000).fill(1);
  let acknowledged = 0;
  opfs.quota = opfs.used() + 200_000;
  const refused = (async () => {
    for (;;) {
      await store.set(acknowledged, value);
      acknowledged++;
    }
  })();
  await expect(refused).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  expect(acknowledged).toBeGreaterThan(10);
  expect((await store.delete(0)).durability).toBe('relaxed');
  expect((await store.deleteRange({ gte: 1, lt: 5 })).durability).toBe('relaxed');
  await store.close();
  const again = await openTest();
  const keys: Key[] = [];
  for await (const key of again.keys()) keys.push(key);
  expect(keys).toEqual(Array.from({ length: acknowledged - 5 }, (_, n) => n + 5));
}, 60_000);

test('a frame that waits for a job does not run once its clients have gone: the store may be closing', async () => {
  const store = { tick: vi.fn() };
  let isStalled = true;
  let jobEnds: () => void = () => undefined;
  const job = new Promise<void>((resolve) => {
    jobEnds = resolve;
  });
  const upkeep = { isStalled: () => isStalled, progress: () => job };
  const owner = { onRun: vi.fn(), onRefused: vi.fn(), onReplaced: vi.fn(), onFailure: vi.fn() };
  const runner = new ImmediateRunner({ store, upkeep } as unknown as EngineHost, owner);
  const send = vi.fn();
  const running = runner.run(new Uint8Array(8), send);
  runner.abort();
  isStalled = false;
  jobEnds();
  await running;
  for (const call of [store.tick, send, ...Object.values(owner)]) expect(call).not.toHaveBeenCalled();
});
