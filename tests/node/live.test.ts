// Queries that are kept up to date, over the real engine.

import { afterEach, expect, test, vi } from 'vitest';
import type { Live } from '../../js/src/changes/types.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import type { Port } from '../../js/src/worker/client.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { tabs } from './support/two-tabs.ts';

const stores: { close(): Promise<void> }[] = [];
const PATIENT = { timeout: 30_000 };

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

async function opened(spawn: () => Port = spawnServer): Promise<Store<Key, unknown>> {
  const store = await openStore<Key, unknown>('live', { wasm, storage: 'memory', memory: 2 ** 20 }, spawn);
  stores.push(store);
  return store;
}

/** What a subscriber is told. */
function heard<T>(live: Live<T>): { values: (T | undefined)[]; stop: () => void } {
  const values: (T | undefined)[] = [];
  return { values, stop: live.subscribe((value) => values.push(value)) };
}

test('a key, a range, keys, values, a count and a function follow what any tab writes', async () => {
  const [first, second] = tabs(2);
  const db = await opened(first);
  const other = await opened(second);
  await db.set(['note', 1], 'one');
  const prefix = ['note'];
  const lives: Live<unknown>[] = [
    db.live(['note', 1]),
    db.live({ prefix, reverse: true, limit: 2 }),
    db.live({ prefix, as: 'keys' }),
    db.live({ prefix, as: 'values' }),
    db.live({ prefix, as: 'count' }),
    db.live(async (view) => [await view.count(), await view.get(['note', 2])]),
  ];
  const all = lives.map(heard);
  const now = (): unknown[] => lives.map((live) => live.value);
  await expect.poll(now, PATIENT).toEqual(['one', [[['note', 1], 'one']], [['note', 1]], ['one'], 1, [1, undefined]]);
  await other.batch().set(['note', 2], 'two').set(['note', 3], 'three').delete(['note', 1]).commit();
  await expect.poll(now, PATIENT).toEqual([
    undefined,
    [
      [['note', 3], 'three'],
      [['note', 2], 'two'],
    ],
    [
      ['note', 2],
      ['note', 3],
    ],
    ['two', 'three'],
    2,
    [2, 'two'],
  ]);
  // Each value that was told is that of a moment: no batch half.
  expect(all[4]?.values).toEqual([undefined, 1, 2]);
  await other.clear();
  await expect.poll(now, PATIENT).toEqual([undefined, [], [], [], 0, [0, undefined]]);
  for (const { stop } of all) stop();
});

test('a subscriber gets what there is at once, and nothing after it left', async () => {
  const db = await opened();
  await db.set('a', 1);
  const live = db.live('a');
  expect([live.value, live.getSnapshot()]).toEqual([undefined, undefined]);
  const one = heard(live);
  expect(one.values).toEqual([undefined]);
  await expect.poll(() => one.values, PATIENT).toEqual([undefined, 1]);
  const two = heard(live);
  expect(two.values).toEqual([1]);
  one.stop();
  one.stop();
  await db.set('a', 2);
  await expect.poll(() => two.values, PATIENT).toEqual([1, 2]);
  two.stop();
  expect(one.values).toEqual([undefined, 1]);
});

test('nothing runs before the first subscriber and after the last one; the next begins anew', async () => {
  const db = await opened();
  const query = vi.fn(async (view: { get(key: Key): Promise<unknown> }) => view.get('a'));
  const live = db.live(query);
  await db.set('a', 1);
  expect(query).not.toHaveBeenCalled();
  const first = heard(live);
  await expect.poll(() => live.value, PATIENT).toBe(1);
  first.stop();
  await db.set('a', 2);
  // Another query over the same feed has seen the write; this one has not run.
  const witness = heard(db.live('a'));
  await expect.poll(() => witness.values.at(-1), PATIENT).toBe(2);
  witness.stop();
  expect(query).toHaveBeenCalledTimes(1);
  const second = heard(live);
  expect(second.values).toEqual([1]);
  await expect.poll(() => live.value, PATIENT).toBe(2);
  second.stop();
});

test('changes elsewhere do not run it, and many changes run it few times', async () => {
  const db = await opened();
  const query = vi.fn(async (view: { count(): Promise<number> }) => view.count());
  const live = db.live(query, { prefix: ['todo'] });
  const { stop } = heard(live);
  await expect.poll(() => live.value, PATIENT).toBe(0);
  for (let i = 0; i < 50; i++) await db.set(['done', i], i);
  await Promise.all(Array.from({ length: 500 }, (_, i) => db.set(['todo', i], i)));
  await expect.poll(() => live.value, PATIENT).toBe(550);
  expect(query.mock.calls.length).toBeLessThan(10);
  stop();
});

test('what a query fails with is told, and ends it; so does the store', async () => {
  const db = await opened();
  const broken = new Error('broken');
  const errors: unknown[] = [];
  const live = db.live(() => {
    throw broken;
  });
  live.subscribe(
    () => undefined,
    (error) => errors.push(error),
  );
  await expect.poll(() => errors, PATIENT).toEqual([broken]);
  const other = db.live('a');
  other.subscribe(
    () => undefined,
    (error) => errors.push(error),
  );
  // One that nobody listens to the errors of ends in silence.
  db.live('b').subscribe(() => undefined);
  await db.set('a', 1);
  await expect.poll(() => other.value, PATIENT).toBe(1);
  await db.close();
  await expect.poll(() => errors, PATIENT).toEqual([broken, expect.objectContaining({ code: 'VARVE_CLOSED' })]);
});
