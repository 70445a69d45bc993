// Queries that are kept up to date, over the real engine.

import { expect, expectTypeOf, test, vi } from 'vitest';
import type { Live } from '../../js/src/changes/types.ts';
import type { Port } from '../../js/src/client/client.ts';
import { VarveError } from '../../js/src/errors.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { closedAfterTest } from './support/stores.ts';
import { tabs } from './support/two-tabs.ts';

const PATIENT = { timeout: 30_000 };

async function opened(spawn: () => Port = spawnServer): Promise<Store<Key, unknown>> {
  const options = { wasm, storage: 'memory', memoryBytes: 2 ** 20, cache: false } as const;
  return closedAfterTest(await openStore<Key, unknown>('live', options, spawn));
}

type Values<T extends readonly { readonly value: unknown }[]> = { readonly [I in keyof T]: T[I]['value'] };

/** The calls that a subscriber gets. */
function heard<T>(live: Live<T>): { values: T[]; stop: () => void } {
  const values: T[] = [];
  return { values, stop: live.subscribe((value) => values.push(value)) };
}

test('a subscriber that throws at once has not subscribed: its caller could not end it', async () => {
  const db = await opened();
  const live = db.live(['a'], { initial: 0 });
  const fail = (): void => {
    throw new Error('not now');
  };
  expect(() => live.subscribe(fail)).toThrow('not now');
  const other = heard(db.live(['a']));
  await db.set(['a'], 1);
  await expect.poll(() => other.values.at(-1), PATIENT).toBe(1);
  expect(live.value).toBe(0);
  other.stop();
});

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
  // Each reported value is the state at one sequence: no half of a batch.
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

test('a query begins with the value it is given, which is what a server renders', async () => {
  const db = await opened();
  await db.set(['note', 1], 'one');
  const live = db.live({ prefix: ['note'], as: 'values' }, { initial: ['rendered'] });
  expect([live.value, live.getSnapshot(), live.getServerSnapshot()]).toEqual([
    ['rendered'],
    ['rendered'],
    ['rendered'],
  ]);
  const { values, stop } = heard(live);
  await expect.poll(() => values, PATIENT).toEqual([['rendered'], ['one']]);
  expect(live.getServerSnapshot()).toEqual(['rendered']);
  // The same object, or React renders for ever.
  expect(live.getSnapshot()).toBe(live.getSnapshot());
  stop();
  const sum = db.live((view) => view.count(), { prefix: ['note'], initial: -1 });
  const counted = heard(sum);
  await expect.poll(() => counted.values, PATIENT).toEqual([-1, 1]);
  counted.stop();
  expect(db.live('none').getServerSnapshot()).toBeUndefined();
});

test('a query that replaces another keeps its last value until the next one is there', async () => {
  const db = await opened();
  await db.batch().set(['red', 1], 'r').set(['blue', 1], 'b').commit();
  const live = db.live({ prefix: ['red'], as: 'values' });
  const { values, stop } = heard(live);
  await expect.poll(() => values, PATIENT).toEqual([undefined, ['r']]);
  live.update({ prefix: ['blue'], as: 'values' });
  expect(live.value).toEqual(['r']);
  // Nothing more is reported of the old query.
  await db.set(['red', 2], 'rr');
  await expect.poll(() => values, PATIENT).toEqual([undefined, ['r'], ['b']]);
  await db.set(['blue', 2], 'bb');
  await expect.poll(() => values.at(-1), PATIENT).toEqual(['b', 'bb']);
  // Two queries in one turn: the last one counts.
  live.update({ prefix: ['none'], as: 'values' });
  live.update({ prefix: ['red'], as: 'values' });
  await expect.poll(() => values.at(-1), PATIENT).toEqual(['r', 'rr']);
  expect(values).toEqual([undefined, ['r'], ['b'], ['b', 'bb'], ['r', 'rr']]);
  stop();
});

test('a query keeps the arguments of its call, also if they change later', async () => {
  const db = await opened();
  const day = (ms: number): Key => ['day', new Date(ms)];
  await db.setMany([
    [['red', 1], 'r'],
    [['red', 2], 'rr'],
    [['blue', 1], 'b'],
    [Uint8Array.of(1), 'one'],
    [Uint8Array.of(2), 'two'],
    [day(1), 'first'],
    [day(2), 'second'],
  ]);
  const range = { prefix: ['red'], reverse: true, limit: 1 };
  const between = { gte: day(1), lt: day(2) };
  const [bytes, key] = [Uint8Array.of(1), day(1) as [string, Date]];
  const lives: Live<unknown>[] = [
    db.live(range),
    db.live(between),
    db.live({ ...between, as: 'count' }),
    db.live(bytes),
    db.live(key),
    db.live({ ...range, as: 'keys' }),
    db.live({ ...range, as: 'values' }),
  ];
  const updated = db.live({ prefix: ['blue'] });
  updated.update(range);
  lives.push(updated);
  range.prefix[0] = 'blue';
  Object.assign(range, { reverse: false, limit: 9, as: 'values' });
  (between.gte as [string, Date])[1].setTime(2);
  (between.lt as [string, Date])[1].setTime(9);
  bytes[0] = 2;
  key[1].setTime(2);
  for (const live of lives) heard(live);
  const red = [[['red', 2], 'rr']];
  await expect
    .poll(() => lives.map((live) => live.value), PATIENT)
    .toEqual([red, [[day(1), 'first']], 1, 'one', 'first', [['red', 2]], ['rr'], red]);
  await db.batch().set(['red', 3], 'rrr').set(Uint8Array.of(1), '1').set(day(1), '1st').commit();
  await expect.poll(() => [0, 3, 4].map((i) => lives[i]?.value), PATIENT).toEqual([[[['red', 3], 'rrr']], '1', '1st']);
});

test('a replaced query runs when somebody subscribes, and an invalid one leaves the old one', async () => {
  const db = await opened();
  await db.batch().set('a', 1).set('b', 2).commit();
  const query = vi.fn(async (view: { get(key: Key): Promise<unknown> }) => view.get('b'));
  const live = db.live((view) => view.get('a'));
  live.update(query, { gte: 'b' });
  await db.get('a');
  expect(query).not.toHaveBeenCalled();
  const { values, stop } = heard(live);
  await expect.poll(() => values, PATIENT).toEqual([undefined, 2]);
  const refused = expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' });
  expect(() => live.update(query, { gt: 'a', gte: 'b' })).toThrow(refused);
  expect(() => db.live('a', { first: 1 } as never)).toThrow(refused);
  expect(() => db.live('a', { prefix: 'a' } as never)).toThrow(refused);
  // A wrong limit was noticed only when the query ran: then the old one was gone.
  const range = db.live({ as: 'values' });
  expect(() => range.update({ as: 'values', limit: -1 })).toThrow(refused);
  expect(() => db.live({ limit: 1.5 })).toThrow(refused);
  await db.set('b', 3);
  await expect.poll(() => values, PATIENT).toEqual([undefined, 2, 3]);
  stop();
});

test('a count takes no limit and no direction, as that of a store', async () => {
  const db = await opened();
  const refused = expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' });
  const counts = db.live({ as: 'count' }, { initial: 0 });
  for (const other of [{ limit: 2 }, { reverse: true }]) {
    expect(() => db.live({ as: 'count', ...other } as never)).toThrow(refused);
    expect(() => counts.update({ as: 'count', ...other })).toThrow(refused);
    await expect(db.count(other as never)).rejects.toThrow(refused);
  }
  // @ts-expect-error The types refuse them, too.
  const typed = () => db.live({ as: 'count', limit: 2 });
  expect(typed).toThrow(refused);
});

test('a range as something else is refused', async () => {
  const db = await opened();
  for (const as of ['entry', null, 1]) {
    expect(() => db.live({ as } as never)).toThrow("as is 'entries', 'keys', 'values' or 'count', not");
  }
});

test('a query continues when the leader ends while it reads, or does not answer', async () => {
  const db = await opened();
  await db.set('a', 1);
  const query = vi.fn(async (view: { get(key: Key): Promise<unknown> }) => view.get('a'));
  for (const code of ['VARVE_RETRY', 'VARVE_LEADER_STALLED'] as const) {
    query.mockRejectedValueOnce(new VarveError(code, 'Call again.'));
  }
  const failures: unknown[] = [];
  const live = db.live(query);
  const stop = live.subscribe(
    () => undefined,
    (error) => failures.push(error),
  );
  await expect.poll(() => live.value, PATIENT).toBe(1);
  expect([query.mock.calls.length, failures]).toEqual([3, []]);
  stop();
});

test('types follow the query and the first value', () => {
  const typed = (db: Store<string, number>) =>
    [
      db.live('a'),
      db.live({ prefix: 'a' }),
      db.live({ prefix: 'a' }, { initial: [] }),
      db.live({ as: 'count' }, { initial: 0 }),
      db.live({ as: 'keys' }),
      db.live(async (view) => view.get('a'), { prefix: 'a' }),
      db.live(async (view) => view.count(), { initial: 0 }),
    ] as const;
  type Typed = ReturnType<typeof typed>;
  expectTypeOf<Values<Typed>>().toEqualTypeOf<
    readonly [
      number | undefined,
      [string, number][] | undefined,
      [string, number][],
      number,
      string[] | undefined,
      number | undefined,
      number,
    ]
  >();
  expectTypeOf<Parameters<Typed[0]['update']>>().toEqualTypeOf<[key: string]>();
  // @ts-expect-error A count is no list.
  const wrong = (db: Store<string, number>) => db.live({ as: 'count' }).update({ as: 'keys' });
  expect(wrong).toBeTypeOf('function');
});

test('the error of a query is reported and ends it, and so is the error of a closed store', async () => {
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
  // A query whose errors have no listener ends in silence.
  db.live('b').subscribe(() => undefined);
  await db.set('a', 1);
  await expect.poll(() => other.value, PATIENT).toBe(1);
  await db.close();
  await expect.poll(() => errors, PATIENT).toEqual([broken, expect.objectContaining({ code: 'VARVE_CLOSED' })]);
});

test('a store that is closed before a query is read leaves no unhandled rejection', async () => {
  const unheard: unknown[] = [];
  const note = (error: unknown): void => void unheard.push(error);
  process.on('unhandledRejection', note);
  const db = await opened();
  const lives = [db.live(['note', 1]), db.live({ prefix: ['note'] }), db.live({ as: 'count' }), db.live(() => 1)];
  const failures: unknown[] = [];
  for (const live of lives)
    live.subscribe(
      () => undefined,
      (error) => failures.push(error),
    );
  await db.close();
  await expect.poll(() => failures.length, PATIENT).toBe(lives.length);
  for (const failure of failures) expect(failure).toMatchObject({ code: 'VARVE_CLOSED' });
  // Subscribers are called at the end of a turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', note);
  expect(unheard).toEqual([]);
});
