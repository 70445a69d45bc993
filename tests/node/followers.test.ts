// Many followers of one store: none of them misses a write, whatever else waits, and many followers cost no more messages than a few.

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Port } from '../../js/src/client/client.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key, KeyRange } from '../../js/src/types.ts';
import { applied, inOrder } from './support/applied.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { stubOpfs } from './support/fake-opfs.ts';
import { Random } from './support/random.ts';

const stores: { close(): Promise<void> }[] = [];
const PATIENT = { timeout: 30_000 };
/** This many followers once made the next write take a minute. */
const THOUSANDS = 20_000;
/** Bytes besides the operations themselves: the headers of a frame or two. */
const FRAME_BYTES = 256;

afterEach(async () => {
  for (const store of stores.splice(0).reverse()) await store.close().catch(() => undefined);
  vi.unstubAllGlobals();
});

/** Counts of the messages that were sent to the engine. */
interface Sent {
  afters: number;
  frames: number;
  bytes: number;
}

async function opened(): Promise<{ db: Store<Key, unknown>; sent: Sent }> {
  const sent: Sent = { afters: 0, frames: 0, bytes: 0 };
  const spawn = (): Port => {
    const port = spawnServer();
    const { postMessage } = port;
    port.postMessage = (message, transfer) => {
      if (message instanceof ArrayBuffer) {
        sent.frames++;
        sent.bytes += message.byteLength;
      } else if ((message as { method?: string }).method === 'after') sent.afters++;
      postMessage(message, transfer);
    };
    return port;
  };
  const store = await openStore<Key, unknown>('followed', { wasm, storage: 'memory' }, spawn);
  stores.push(store);
  return { db: store, sent };
}

test('a slow follower gets every change while a newer one waits ahead of it', async () => {
  const { db, sent } = await opened();
  const slow = db.changes();
  const first = slow.next();
  await expect.poll(() => sent.afters, PATIENT).toBeGreaterThan(0);
  await db.set('a', 1);
  expect((await first).value).toMatchObject({ key: 'a' });
  await db.set('b', 2);
  const { afters } = sent;
  // It begins behind the writes that the slow one has not seen yet, and waits there.
  const ahead = db.changes();
  const waiting = ahead.next();
  await expect.poll(() => sent.afters, PATIENT).toBeGreaterThan(afters);
  expect((await slow.next()).value).toMatchObject({ key: 'b' });
  await db.set('c', 3);
  expect((await waiting).value).toMatchObject({ key: 'c' });
  expect((await slow.next()).value).toMatchObject({ key: 'c' });
});

test('a follower that is more than one page behind gets later changes', async () => {
  const { db, sent } = await opened();
  const value = 'v'.repeat(1000);
  await db.setMany(Array.from({ length: 1500 }, (_, i) => [i, value]));
  const changes = db.changes();
  const first = changes.next();
  await expect.poll(() => sent.afters, PATIENT).toBeGreaterThan(0);
  await db.set('a', 1);
  expect((await first).value).toMatchObject({ key: 'a' });
});

test('thousands of followers of the same keys ask once for what was written', async () => {
  const { db, sent } = await opened();
  const waiting = Array.from({ length: THOUSANDS }, () => db.changes().next());
  await expect.poll(() => sent.afters, PATIENT).toBeGreaterThan(0);
  await db.get('in order behind what they asked');
  const before = { ...sent };
  const { sequence } = await db.set('a', 1);
  const all = await Promise.all(waiting);
  expect(all.every(({ value }) => value?.sequence === sequence)).toBe(true);
  // The write, the page, and at most the next wait.
  expect(sent.frames - before.frames).toBeLessThanOrEqual(2);
  expect(sent.bytes - before.bytes).toBeLessThan(FRAME_BYTES);
  expect(sent.afters - before.afters).toBeLessThanOrEqual(1);
  // They have what they requested, and cost nothing more.
  const after = { ...sent };
  await db.set('a', 2);
  await db.get('a');
  expect(sent).toEqual({ afters: after.afters, frames: after.frames + 2, bytes: expect.any(Number) });
});

test('thousands of followers of different keys share what they read of a write elsewhere', async () => {
  const { db, sent } = await opened();
  const answered: number[] = [];
  const all = Array.from({ length: THOUSANDS }, (_, key) => db.watch(key).next());
  all.forEach((next, key) => void next.then(() => answered.push(key)).catch(() => undefined));
  await expect.poll(() => sent.afters, PATIENT).toBeGreaterThan(0);
  await db.get('in order behind what they asked');
  for (let i = 0; i < 3; i++) {
    const before = { ...sent };
    await db.set('elsewhere', i);
    await expect.poll(() => sent.afters, PATIENT).toBeGreaterThan(before.afters);
    // A few send their own requests; requests of all the others would be 20,000 operations.
    expect(sent.bytes - before.bytes).toBeLessThan(12 * FRAME_BYTES);
  }
  expect(answered).toEqual([]);
  await db.set(1234, 'here');
  await db.deleteRange({ gte: 17, lt: 20 });
  await expect.poll(() => answered.toSorted((a, b) => a - b), PATIENT).toEqual([17, 18, 19, 1234]);
});

/** A tab whose worker can be ended. */
class Tab {
  readonly db: Store<Key, unknown>;
  readonly worker: () => Port;
  /** Its copy of the store, kept up to date by changes, and the sequence that the copy has reached. */
  readonly copy = new Map<number, unknown>();
  position = 0;
  /** Each is kept up to date by a live query: the store, and the number of keys in a range. */
  readonly entries: { readonly value: unknown };
  readonly count: { readonly value: unknown };
  /** The error that ended a follower. */
  readonly failures: unknown[] = [];

  constructor(db: Store<Key, unknown>, worker: () => Port) {
    this.db = db;
    this.worker = worker;
    const [entries, count] = [db.live({}), db.live((view) => view.count({ gte: 3, lt: 9 }), { gte: 3, lt: 9 })];
    const failed = (error: unknown): number => this.failures.push(error);
    entries.subscribe(() => undefined, failed);
    count.subscribe(() => undefined, failed);
    [this.entries, this.count] = [entries, count];
    this.#follow().catch(failed);
  }

  async #follow(): Promise<void> {
    for await (const change of this.db.changes({ since: 0 })) {
      if (change.type === 'gap') throw new Error('nothing was cut');
      applied(this.copy, change);
      this.position = change.sequence;
    }
  }
}

async function openTab(storage: 'opfs' | 'indexeddb', memoryBytes: number): Promise<Tab> {
  let worker: Port | undefined;
  const spawn = (): Port => {
    worker = spawnServer();
    return worker;
  };
  const options = { wasm, storage, memoryBytes, historyBytes: 2 ** 22 };
  const db = await openStore<Key, unknown>('shared', options, spawn, {});
  stores.push(db);
  return new Tab(db, () => worker as Port);
}

async function leaderOf(tabs: readonly Tab[]): Promise<Tab | undefined> {
  for (const tab of tabs) if ((await tab.db.stats()).sharing?.leads) return tab;
  return undefined;
}

function write({ db }: Tab, random: Random, value: string): Promise<{ sequence: number }> {
  const [kind, key] = [random.below(10), random.below(12)];
  if (kind > 4) return db.set(key, value, { durability: random.pick(['memory', 'relaxed', 'strict']) });
  if (kind > 2) return db.delete(key);
  if (kind > 1)
    return db
      .batch()
      .set(key, value)
      .delete(key + 1)
      .commit();
  return db.deleteRange(random.pick<KeyRange<Key>>([{ gt: key, lt: key + 3 }, { gte: key }]));
}

describe.each(['opfs', 'indexeddb'] as const)('in %s', (storage) => {
  test('followers in every tab see the last write in the end, whichever tab leads meanwhile', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      stubOpfs();
      vi.stubGlobal('indexedDB', new IDBFactory());
      const random = new Random(seed);
      const tabs = [await openTab(storage, 2 ** 20), await openTab(storage, 2 ** 20), await openTab(storage, 2 ** 20)];
      for (let round = 0; round < 6; round++) {
        const leader = await leaderOf(tabs);
        const writes = Array.from({ length: 1 + random.below(12) }, (_, i) =>
          write(random.pick(tabs), random, `${round} ${i}`),
        );
        for (let turn = random.below(8); turn > 0; turn--) await new Promise(setImmediate);
        if (random.below(2) === 0) leader?.worker().terminate?.();
        await Promise.all(writes);
      }
      const { sequence } = await random.pick(tabs).db.set(5, 'last');
      const entries: [number, unknown][] = [];
      for await (const entry of (tabs[0] as Tab).db.entries()) entries.push(entry as [number, unknown]);
      const count = entries.filter(([key]) => key >= 3 && key < 9).length;
      for (const tab of tabs) {
        const seen = (): unknown => [tab.position, inOrder(tab.copy), tab.entries.value, tab.count.value, tab.failures];
        await expect
          .poll(seen, { ...PATIENT, message: `seed ${seed}` })
          .toEqual([sequence, entries, entries, count, []]);
      }
      for (const store of stores.splice(0).reverse()) await store.close();
    }
  });
});
