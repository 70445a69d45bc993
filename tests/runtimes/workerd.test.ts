// Stores in Durable Objects, in a real workerd: the process is killed and started again on the same folder.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { TestStore } from './fixtures/object-worker.ts';
import { bundleWorker, Workerd } from './support/workerd.ts';

/** How long something that happens by itself may take on a busy machine; and a longer time, for a test with several such waits. */
const POLL_MS = 60_000;
vi.setConfig({ testTimeout: 3 * POLL_MS });
/** workerd evicts an object that had no work for ten seconds. */
const EVICTED_MS = 11_000;

const folder = mkdtempSync(join(tmpdir(), 'varve-workerd-'));
let script = '';
const running = new Set<Workerd>();

async function start(name?: string): Promise<Workerd> {
  const workerd = new Workerd({ script, folder: name === undefined ? undefined : join(folder, name) });
  running.add(workerd);
  return workerd;
}

async function stop(workerd: Workerd): Promise<void> {
  running.delete(workerd);
  await workerd.stop();
}

beforeAll(async () => {
  script = await bundleWorker('object-worker.ts');
});

afterEach(async () => {
  for (const workerd of running) await stop(workerd);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('an object keeps a store: keys in order, ranges, conditions, transactions, an upgrade', async () => {
  const store = await (await start()).object<TestStore>('one');
  const [, , , keys, count, got] = await store.run([
    ['set', ['note', 42], { title: 'Silt' }],
    ['set', ['note', 7], { title: 'Clay' }],
    ['set', 'balance', 10],
    ['keys', { prefix: ['note'] }],
    ['count', {}],
    ['get', ['note', 42]],
  ]);
  expect(keys).toEqual([
    ['note', 7],
    ['note', 42],
  ]);
  expect([count, got]).toEqual([4, { title: 'Silt' }]);
  expect(await store.transfer('balance', 'other', 4)).toBe(6);
  expect(await store.transfer('balance', 'other', 40)).toBe(-1);
  expect(await store.run([['getMany', ['balance', 'other', 'made by']]])).toEqual([[6, 4, 'upgrade']]);
  expect(await store.openAgain()).toBe('VARVE_LOCKED');
  const { storage, recovery, memoryBytesMax } = await store.state();
  expect([storage, recovery.state, memoryBytesMax]).toEqual([{ kind: 'durable-object' }, 'new', 8 * 2 ** 20]);
});

test('answered writes are there after the process was killed', async () => {
  let workerd = await start('killed');
  const store = await workerd.object<TestStore>('one');
  await store.fill(2000, 200, 50);
  await store.run([['set', 'last', 'before the kill']]);
  await stop(workerd);
  for (let round = 0; round < 3; round++) {
    workerd = await start('killed');
    const again = await workerd.object<TestStore>('one');
    expect(await again.wrong(2000, 200)).toBe(0);
    expect(
      await again.run([
        ['get', 'last'],
        ['get', `round ${round - 1}`],
      ]),
    ).toEqual(['before the kill', round === 0 ? undefined : round - 1]);
    expect((await again.state()).recovery).toMatchObject({ state: 'replayed', recordsDropped: 0 });
    await again.run([['set', `round ${round}`, round]]);
    await stop(workerd);
  }
});

test('an object keeps an encrypted store, which opens with its key only', async () => {
  const workerd = await start('secret');
  expect(await (await workerd.object<TestStore>('one')).secret('a')).toEqual({ keys: ['a'], refused: 'VARVE_KEY' });
  await stop(workerd);
  const again = await (await start('secret')).object<TestStore>('one');
  expect(await again.secret('b')).toEqual({ keys: ['a', 'b'], refused: 'VARVE_KEY' });
});

test('flushes and compactions run in the alarm, and nothing is left armed', async () => {
  const workerd = await start('alarm');
  const store = await workerd.object<TestStore>('one');
  for (let round = 0; round < 6; round++) await store.fill(10_000, 300, 500, round);
  await expect.poll(() => store.isAtRest(), { timeout: POLL_MS }).toBe(true);
  await expect.poll(async () => (await store.state()).frozen, { timeout: POLL_MS }).toBe(0);
  const { tables, flushes, compactions } = await store.state();
  expect(tables).toBeGreaterThan(0);
  expect(flushes).toBeGreaterThan(2);
  expect(compactions).toBeGreaterThan(0);
  expect(await store.wrong(10_000, 300, 5)).toBe(0);
  await stop(workerd);
  const again = await (await start('alarm')).object<TestStore>('one');
  expect(await again.wrong(10_000, 300, 5)).toBe(0);
});

test('an alarm of the program is not moved; the engine then works in the turns of writers', async () => {
  const store = await (await start()).object<TestStore>('one');
  const time = Date.now() + 3_600_000;
  await store.setAlarmAt(time);
  for (let round = 0; round < 4; round++) await store.fill(10_000, 300, 500, round);
  expect(await store.alarmAt()).toBe(time);
  expect((await store.state()).flushes).toBeGreaterThan(0);
  expect(await store.wrong(10_000, 300, 3)).toBe(0);
});

test('a turn is one row, however many sets it has', async () => {
  const store = await (await start()).object<TestStore>('one');
  const sets = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ['set', `key ${from + i}`, 'small value'] as const);
  const rows = async () => (await store.state()).rows;
  await store.run(sets(0, 100));
  let before = await rows();
  await store.run(sets(100, 100));
  expect((await rows()) - before).toBe(1);
  before = await rows();
  await store.runAwaiting(sets(200, 100));
  expect((await rows()) - before).toBe(1);
  before = await rows();
  await store.runInTurns(sets(300, 100));
  expect((await rows()) - before).toBeLessThanOrEqual(102);
  before = await rows();
  await store.run([
    ['getMany', ['key 1', 'key 2']],
    ['count', {}],
  ]);
  expect((await rows()) - before).toBe(0);
});

test('objects of one isolate share an engine, and one that was evicted is opened again', async () => {
  const workerd = await start('evicted');
  const b = await workerd.object<TestStore>('b');
  let a = await workerd.object<TestStore>('a');
  await Promise.all([a.run([['set', 'mine', 'a']]), b.run([['set', 'mine', 'b']])]);
  for (let round = 0; round < 30; round++) {
    await a.run([['set', `round ${round}`, new Uint8Array(20_000)]]);
    expect((await workerd.fetch('/evict')).text).toContain('evicted by a test');
    a = await workerd.object<TestStore>('a');
    const [mine, count] = await a.run([
      ['get', 'mine'],
      ['count', { gte: 'round', lt: 'rounds' }],
    ]);
    expect([mine, count]).toEqual(['a', round + 1]);
    expect(await b.run([['get', 'mine']])).toEqual(['b']);
  }
});

test('rows of a real object keep the contract of storages', async () => {
  const store = await (await start()).object<TestStore>('one');
  const { clauses, failures } = await store.contract();
  expect(failures).toEqual([]);
  expect(clauses).toBeGreaterThan(20);
});

test('an object hibernates behind an open WebSocket, and wakes with its store', async () => {
  const workerd = await start();
  const send = await workerd.socket('/socket');
  expect(await send('a')).toBe('1 of 1');
  expect(await send('b')).toBe('2 of 2');
  // The question whether it was evicted is itself work for the object: the ten seconds begin again.
  let [answer, messages] = ['', 2];
  for (const end = performance.now() + 2 * POLL_MS; !answer.startsWith('1 of') && performance.now() < end; messages++) {
    await new Promise((resolve) => setTimeout(resolve, EVICTED_MS));
    answer = await send('c');
  }
  expect(answer).toBe(`1 of ${messages}`);
});

test('a check verifies rows like any other storage, and its error names a missing part', async () => {
  const store = await (await start()).object<TestStore>('one');
  await store.fill(8000, 300, 500);
  await expect.poll(() => store.isAtRest(), { timeout: POLL_MS }).toBe(true);
  expect(await store.verified()).toEqual({
    ok: true,
    entries: expect.any(Number),
    problems: [],
    without: 'VARVE_UNSUPPORTED',
  });
});

test('open of varve keeps a store in an object, its jobs in slices behind the turns', async () => {
  const store = await (await start()).object<TestStore>('one');
  const result = await store.opened(4000);
  expect(result).toEqual({ count: 4000, flushes: expect.any(Number), kind: 'durable-object' });
  expect((result as { flushes: number }).flushes).toBeGreaterThan(0);
});

test('such a store has collections, Blobs and exclusive transactions, and all of them again after the process was killed', async () => {
  const existed = expect.objectContaining({ existed: false });
  const first = await start('documents');
  const once = await (await first.object<TestStore>('one')).documents(1, 'silt');
  expect(once).toEqual({ found: [1], texts: ['silt'], existed });
  await stop(first);
  const again = await (await (await start('documents')).object<TestStore>('one')).documents(2, 'clay');
  expect(again).toEqual({ found: [1, 2], texts: ['silt', 'clay'], existed });
});

test('values of megabytes', async () => {
  const workerd = await start('large');
  const store = await workerd.object<TestStore>('one');
  await store.fill(4, 3_000_000, 1);
  expect(await store.wrong(4, 3_000_000)).toBe(0);
  await stop(workerd);
  expect(await (await (await start('large')).object<TestStore>('one')).wrong(4, 3_000_000)).toBe(0);
});

test('no answer leaves an object whose rows could not be written', async () => {
  const workerd = await start();
  expect(await workerd.fetch('/kept')).toEqual({ status: 200, text: 'stored /kept' });
  const lost = await workerd.fetch('/lost');
  expect(lost.status).toBe(500);
  expect(lost.text).toContain('could not be written');
});

test('a plain Worker has the store of an object, errors by code included', async () => {
  const workerd = await start();
  expect(JSON.parse((await workerd.fetch('/client')).text)).toEqual({
    note: ['Silt', 0, '7'],
    many: ['Clay', null],
    has: [true, false],
    keys: [
      ['note', 42],
      ['note', 7],
    ],
    count: 2,
    sequence: expect.any(Number),
    errors: [
      ['VARVE_CONFLICT', ['note', 7]],
      ['VARVE_INVALID_KEY', null],
      expect.anything(),
      ['VARVE_INVALID_ARGUMENT', null],
    ],
  });
});

test('a store over five objects', async () => {
  const workerd = await start();
  expect(JSON.parse((await workerd.fetch('/shards')).text)).toEqual({
    refused: 'VARVE_INVALID_ARGUMENT',
    shards: 5,
    count: 3000,
    inOrder: true,
    length: 3000,
    last: [2999, 2998, 2997].map((key) => [key, expect.any(String)]),
    many: [expect.any(String), expect.any(String), null],
  });
});
