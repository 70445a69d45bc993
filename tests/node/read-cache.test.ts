// `open({ cache })`: which answers a read in the tab may return, and for how long after another client has written.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RecentValues } from '../../js/src/changes/recent-values.ts';
import type { Port } from '../../js/src/client/client.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { CacheOptions, Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { Random } from './support/random.ts';
import { tabs } from './support/two-tabs.ts';

const stores: { close(): Promise<void> }[] = [];
const PATIENT = { timeout: 30_000 };
let frames = 0;
let lateness = 0;

beforeEach(() => {
  frames = 0;
  lateness = 0;
});

afterEach(async () => {
  vi.useRealTimers();
  for (const store of stores.splice(0)) await store.close();
});

/** A port that counts frames, and can delay the engine's answers for this many turns. */
function watched(spawn: () => Port): Port {
  const port = spawn();
  const held: Promise<unknown>[] = [];
  const outer: Port = {
    onmessage: null,
    postMessage: (message, transfer) => {
      if (message instanceof ArrayBuffer) frames++;
      port.postMessage(message, transfer);
    },
  };
  port.onmessage = (event) => {
    const turns = async (): Promise<void> => {
      for (let i = 0; i < lateness; i++) await new Promise((resolve) => setImmediate(resolve));
    };
    // In order.
    const before = held.at(-1) ?? Promise.resolve();
    held.push(before.then(turns).then(() => outer.onmessage?.(event)));
  };
  return outer;
}

interface Pair {
  readonly db: Store<Key, unknown>;
  readonly other: Store<Key, unknown>;
}

/** A tab with a cache, and one without. */
async function pair(cache: CacheOptions = {}): Promise<Pair> {
  const [first, second] = tabs(2) as [() => Port, () => Port];
  const options = { wasm, storage: 'memory', memoryBytes: 2 ** 20 } as const;
  const db = await openStore<Key, unknown>('cached', { ...options, cache }, () => watched(first));
  stores.push(db);
  const other = await openStore<Key, unknown>('cached', options, second);
  stores.push(other);
  return { db, other };
}

/** The answer of a read, and how many frames it sent. */
async function sent<T>(read: () => Promise<T>): Promise<[T, number]> {
  const before = frames;
  const value = await read();
  return [value, frames - before];
}

test('a value that was read is answered without asking, absent ones too', async () => {
  const { db } = await pair({ ttl: 60_000 });
  await db.set('a', { deep: [1] });
  // The tab's own write comes back by the feed.
  await expect.poll(() => sent(() => db.get('a')), PATIENT).toEqual([{ deep: [1] }, 0]);
  await db.get('nothing');
  expect(await sent(() => db.get('nothing'))).toEqual([undefined, 0]);
  expect(await sent(() => db.has('a'))).toEqual([true, 0]);
  expect(await sent(() => db.has('nothing'))).toEqual([false, 0]);
  expect(await sent(() => db.getMany(['nothing', 'a', 'a']))).toEqual([[undefined, { deep: [1] }, { deep: [1] }], 0]);
  // A change to a returned value affects only that value.
  const value = (await db.get('a')) as { deep: number[] };
  value.deep.push(2);
  expect(await db.get('a')).toEqual({ deep: [1] });
  await db.set('bytes', Uint8Array.of(1, 2));
  ((await db.get('bytes')) as Uint8Array).fill(9);
  expect(await db.get('bytes')).toEqual(Uint8Array.of(1, 2));
});

test('own writes of every kind are seen at once', async () => {
  const { db } = await pair({ ttl: 60_000 });
  const writes: [unknown, () => Promise<unknown>][] = [
    [1, () => db.set('a', 1)],
    [undefined, () => db.delete('a')],
    [2, () => db.setMany([['a', 2]])],
    [undefined, () => db.deleteRange({ gte: 'a', lt: 'b' })],
    [3, () => db.batch().set('z', 1).set('a', 3).commit()],
    [undefined, () => db.batch().deleteRange({ prefix: 'a' }).commit()],
    [4, () => db.transaction((tx) => tx.set('a', 4))],
    [5, () => db.update('a', () => 5)],
    [undefined, () => db.clear()],
    [6, () => db.set('a', 6, { expiresIn: 60_000 })],
  ];
  for (const [value, write] of writes) {
    await db.get('a');
    const written = write();
    if (value !== 4 && value !== 5) expect(await db.get('a')).toBe(value);
    await written;
    expect(await db.get('a')).toBe(value);
  }
});

test('a value read before an own write, and arriving after it, is not kept', async () => {
  const { db } = await pair({ ttl: 60_000 });
  await db.set('a', 'old');
  lateness = 3;
  for (let round = 0; round < 20; round++) {
    const early = db.get('a');
    await Promise.resolve();
    const written = db.set('a', round);
    const [before, after] = await Promise.all([early, db.get('a')]);
    expect([before, after]).toEqual([round === 0 ? 'old' : round - 1, round]);
    await written;
    expect(await db.get('a')).toBe(round);
  }
});

test("another tab's write is seen when its change has arrived, and not later", async () => {
  const { db, other } = await pair({ ttl: 60_000 });
  const writes: (() => Promise<unknown>)[] = [
    () => other.set('a', 'changed'),
    () => other.delete('a'),
    () => other.batch().deleteRange({ lt: 'b' }).commit(),
    () => other.clear(),
  ];
  for (const write of writes) {
    await db.set('a', 1);
    const feed = db.changes();
    await db.get('a');
    await write();
    // All readers of a tab share what the feed reports; this one gets the write together with the cache, or after it.
    for await (const _ of feed) break;
    await expect.poll(() => db.get('a'), PATIENT).toBe(await other.get('a'));
  }
});

test('a value is answered for ttl at most, and not past its expiry', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { db } = await pair({ ttl: 1000 });
  await db.set('a', 1);
  await db.set('brief', 1, { expiresIn: 300 });
  const isKept = async (key: Key): Promise<boolean> => (await sent(() => db.get(key)))[1] === 0;
  // Until the feed has reported the writes above.
  await expect.poll(async () => (await isKept('a')) && (await isKept('brief')), PATIENT).toBe(true);
  const expires = Number((await db.getEntry('brief'))?.expires);
  vi.setSystemTime(expires - 1);
  expect(await sent(() => db.get('brief'))).toEqual([1, 0]);
  vi.setSystemTime(expires);
  expect(await sent(() => db.get('brief'))).toEqual([undefined, 1]);
  expect(await isKept('a')).toBe(true);
  vi.setSystemTime(Date.now() + 1000);
  expect(await isKept('a')).toBe(false);
  expect(await isKept('a')).toBe(true);
});

test('snapshots, transactions, scans and getEntry ask the store', async () => {
  const { db } = await pair({ ttl: 60_000 });
  await db.set('a', 1);
  await db.get('a');
  const snapshot = await db.snapshot();
  await db.set('a', 2);
  expect(await db.get('a')).toBe(2);
  expect(await snapshot.get('a')).toBe(1);
  expect(await db.transaction((tx) => tx.get('a'))).toBe(2);
  expect((await db.getEntry('a'))?.value).toBe(2);
  await snapshot.close();
});

test('a cache changes no error, and a closed store answers nothing', async () => {
  const { db } = await pair({ ttl: 60_000 });
  await db.set('a', 1);
  await db.get('a');
  await expect(db.get(Number.NaN)).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY' });
  await expect(db.getMany(['a', Number.NaN])).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY' });
  await expect(db.get('a', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
  for (const cache of [{ maxEntries: 0 }, { maxBytes: -1 }, { ttl: Number.NaN }]) {
    await expect(pair(cache)).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  }
  await db.close();
  await expect(db.get('a')).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
});

test('own reads follow own writes, and other tabs are followed, under any order of calls', async () => {
  for (let seed = 1; seed <= 5; seed++) {
    const random = new Random(seed);
    const { db, other } = await pair({ ttl: 60_000, maxEntries: 5 });
    lateness = seed - 1;
    // Keys of this tab alone are exact. Keys that the other tab writes are numbers that only rise, so a read never goes back behind a
    // write of this tab.
    const own = new Map<string, number>();
    const checks: Promise<void>[] = [];
    for (let i = 0; i < 400; i++) {
      const key = `own ${random.below(8)}`;
      const act = random.below(6);
      if (act === 0) {
        own.set(key, i);
        checks.push(db.set(key, i).then(() => undefined));
      } else if (act === 1) {
        own.delete(key);
        checks.push(
          db
            .batch()
            .delete(key)
            .commit()
            .then(() => undefined),
        );
      } else if (act === 2) checks.push(other.set('shared', i).then(() => undefined));
      else {
        const wanted = own.get(key);
        const of = `seed ${seed}, call ${i}`;
        checks.push(db.get(key).then((value) => expect(value, of).toBe(wanted)));
      }
      if (random.below(4) === 0) await db.get('shared');
    }
    await Promise.all(checks);
    await expect.poll(async () => (await db.get('shared')) === (await other.get('shared')), PATIENT).toBe(true);
    lateness = 0;
  }
});

describe('values used recently', () => {
  const kept = (length: number) => ({ bytes: new Uint8Array(length), until: 10 });
  const put = (values: RecentValues, id: string, length: number): void => values.keep(values.await(id), kept(length));

  test('stay within their numbers, those used last', () => {
    const values = new RecentValues(3, 1000);
    for (const id of ['a', 'b', 'c']) put(values, id, 10);
    values.get('a', 0);
    put(values, 'd', 10);
    expect(['a', 'b', 'c', 'd'].map((id) => values.get(id, 0) !== undefined)).toEqual([true, false, true, true]);
    put(values, 'large', 800);
    expect(['c', 'd', 'large'].map((id) => values.get(id, 0) !== undefined)).toEqual([false, true, true]);
    put(values, 'too large', 1000);
    expect(['d', 'large', 'too large'].map((id) => values.get(id, 0))).toEqual([undefined, undefined, undefined]);
    put(values, 'a', 10);
    expect([values.get('a', 9) !== undefined, values.get('a', 10)]).toEqual([true, undefined]);
  });

  test('are dropped by key and by range, those under way too', () => {
    const values = new RecentValues(10, 10_000);
    const late = ['a', 'b', 'c'].map((id) => values.await(id));
    values.drop('a');
    values.dropRange('c', undefined);
    for (const ticket of late) values.keep(ticket, kept(1));
    expect(['a', 'b', 'c'].map((id) => values.get(id, 0) !== undefined)).toEqual([false, true, false]);
    values.dropRange('b', 'c');
    expect(values.get('b', 0)).toBeUndefined();
  });
});
