/** `nextv`, `seek` and `toArray` of iterators, against a model: of stores, snapshots and transactions, asynchronous and synchronous. */

import { describe, expect, test } from 'vitest';
import { openStore } from '../../js/src/store/open.ts';
import { open } from '../../js/src/synchronous.ts';
import type { Key, RangeIterator, ScanOptions, SyncRangeIterator } from '../../js/src/types.ts';
import { type Random, randomFrom } from '../support/random.ts';
import { spawnServer, wasm } from './support/engine.ts';

type Item = [number, string];
type Moves = RangeIterator<number, Item> | SyncRangeIterator<number, Item>;
/** What reads, and what of a model it sees. */
interface Reads {
  entries(options: ScanOptions<number>): Moves;
}

const KEYS = 600;
/** Some values are so large that a scan has many batches. */
const textOf = (key: number): string => `${key} `.repeat(key % 50 === 0 ? 2000 : 3);
const some = (random: Random, share: number): Item[] =>
  Array.from({ length: KEYS }, (_, key): Item => [key, textOf(key)]).filter(() => random(10) < share);

/** A range whose bounds are there or not. */
function rangeOf(random: Random): ScanOptions<number> {
  const options: ScanOptions<number> = { reverse: random(2) === 0 };
  if (random(2) === 0) options[random(2) === 0 ? 'gt' : 'gte'] = random(KEYS / 2);
  if (random(2) === 0) options[random(2) === 0 ? 'lt' : 'lte'] = KEYS / 2 + random(KEYS / 2);
  if (random(4) === 0) options.limit = random(200);
  return options;
}

/** The iterator that a range of an array would have. */
class ModelIterator {
  readonly #items: Item[];
  readonly #isReverse: boolean;
  #left: number;
  #at = 0;

  constructor(all: readonly Item[], { gt = -1, gte = 0, lt = KEYS, lte = KEYS, reverse, limit }: ScanOptions<number>) {
    this.#items = all.filter(([key]) => key > gt && key >= gte && key < lt && key <= lte);
    if (reverse) this.#items.reverse();
    this.#isReverse = reverse === true;
    this.#left = limit ?? Number.POSITIVE_INFINITY;
  }

  nextv(size: number): Item[] {
    const found = this.#items.slice(this.#at, this.#at + Math.min(size, this.#left));
    this.#at += found.length;
    this.#left -= found.length;
    return found;
  }

  seek(key: number): void {
    const at = this.#items.findIndex(([other]) => (this.#isReverse ? other <= key : other >= key));
    this.#at = at < 0 ? this.#items.length : at;
  }
}

async function compare(reads: Reads, all: readonly Item[], random: Random): Promise<void> {
  const range = rangeOf(random);
  const [iterator, model] = [reads.entries(range), new ModelIterator(all, range)];
  const answers: [unknown, unknown][] = [];
  for (let step = random(12); step >= 0; step--) {
    const kind = random(3);
    if (kind === 0) {
      const key = random(KEYS + 20) - 10;
      iterator.seek(key);
      model.seek(key);
    } else if (kind === 1) {
      const next = await iterator.next();
      answers.push([next.done ? undefined : next.value, model.nextv(1)[0]]);
    } else {
      const size = random(40);
      // Not awaited at once: moves happen in the order of their calls.
      const found = iterator.nextv(size);
      answers.push([random(2) === 0 ? await found : found, model.nextv(size)]);
    }
  }
  if ('toArray' in iterator) answers.push([iterator.toArray(), model.nextv(KEYS)]);
  for (const [found, expected] of answers) expect(await found).toEqual(expected);
  await iterator.return?.();
}

/** Lays writes over a model. */
function written(all: readonly Item[], tx: { set(key: number, value: string): void; delete(key: number): void }) {
  const random = randomFrom(all.length);
  const map = new Map(all);
  for (let count = random(60); count > 0; count--) {
    const key = random(KEYS);
    if (random(3) === 0) {
      map.delete(key);
      tx.delete(key);
    } else {
      map.set(key, `own ${key}`);
      tx.set(key, `own ${key}`);
    }
  }
  return [...map].sort(([a], [b]) => a - b);
}

const SEEDS = Array.from({ length: 12 }, (_, seed) => seed);
const options = { wasm, storage: 'memory', memoryBytes: 2 ** 20 } as const;

describe('moves of iterators answer as the model', () => {
  test.each(SEEDS)('of the asynchronous store: seed %i', async (seed) => {
    const random = randomFrom(seed, 1);
    const all = some(random, 7);
    await using db = await openStore<number, string>('test', options, spawnServer);
    await db.setMany(all);
    for (let i = 0; i < 15; i++) await compare(db, all, random);
    await using snapshot = db.snapshot();
    await db.setMany(some(random, 3).map(([key]) => [key, 'later']));
    await db.deleteRange({ gte: random(KEYS) });
    for (let i = 0; i < 15; i++) await compare(snapshot, all, random);
    await using tx = await db.begin();
    const now: Item[] = [];
    for await (const item of tx) now.push(item);
    const seen = written(now, tx);
    for (let i = 0; i < 15; i++) await compare(tx, seen, random);
  });

  test.each(SEEDS)('of the synchronous store: seed %i', async (seed) => {
    const random = randomFrom(seed, 2);
    const all = some(random, 7);
    await using db = await open<number, string>('test', options);
    db.setMany(all);
    for (let i = 0; i < 15; i++) await compare(db, all, random);
    const snapshot = db.snapshot();
    db.setMany(some(random, 3).map(([key]): Item => [key, 'later']));
    db.deleteRange({ gte: random(KEYS) });
    for (let i = 0; i < 15; i++) await compare(snapshot, all, random);
    const tx = db.begin();
    const seen = written([...tx], tx);
    for (let i = 0; i < 15; i++) await compare(tx, seen, random);
    tx.rollback();
  });
});

describe('an iterator', () => {
  test('goes on in the store as it is now after a seek, and sees nothing later without one', async () => {
    await using db = await openStore<number, string>('test', options, spawnServer);
    await db.setMany([
      [1, 'a'],
      [2, 'b'],
    ]);
    const [moved, still] = [db.values(), db.values()];
    await db.setMany([
      [1, 'A'],
      [3, 'C'],
    ]);
    expect(await still.nextv(9)).toEqual(['a', 'b']);
    moved.seek(0);
    expect(await moved.nextv(9)).toEqual(['A', 'b', 'C']);
  });

  test('that was ended stays ended; one that came to its end goes on elsewhere', async () => {
    await using db = await openStore<number, string>('test', options, spawnServer);
    await db.setMany([
      [1, 'a'],
      [2, 'b'],
    ]);
    const keys = db.keys();
    expect(await keys.nextv(9)).toEqual([1, 2]);
    expect(await keys.nextv(9)).toEqual([]);
    keys.seek(2);
    expect(await keys.nextv(9)).toEqual([2]);
    await keys.return?.();
    keys.seek(1);
    expect(await keys.nextv(9)).toEqual([]);
  });

  test('of a store, a view, a snapshot or a transaction gives what is left as an array', async () => {
    await using db = await openStore<Key, string>('test', options, spawnServer);
    await db.setMany([
      [['note', 1], 'a'],
      [['note', 2], 'b'],
      [['note', 3], 'c'],
    ]);
    await using snapshot = db.snapshot();
    await using tx = await db.begin();
    for (const place of [db, snapshot, tx]) {
      const notes = place.at<number, string>(['note']);
      const items = notes.entries({ reverse: true });
      expect(await items.next()).toEqual({ done: false, value: [3, 'c'] });
      expect(await items.toArray()).toEqual([
        [2, 'b'],
        [1, 'a'],
      ]);
      expect(await items.toArray()).toEqual([]);
      expect(await notes.values({ limit: 2 }).toArray()).toEqual(['a', 'b']);
      expect(await place.keys({ prefix: ['note', 4] }).toArray()).toEqual([]);
      expect(await place[Symbol.asyncIterator]().toArray()).toHaveLength(3);
      const ending = new AbortController();
      const all = place.keys({ signal: ending.signal }).toArray();
      ending.abort(new Error('left'));
      await expect(all).rejects.toThrow('left');
    }
  });

  test('refuses a size and a key that are none, and goes on', async () => {
    await using db = await openStore<number, string>('test', options, spawnServer);
    await using sync = await open<number, string>('other', options);
    for (const store of [db, sync]) {
      await store.set(1, 'a');
      const keys = store.keys();
      const nextv = async (size: number): Promise<unknown> => keys.nextv(size);
      await expect(nextv(-1)).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
      expect(() => keys.seek(Number.NaN)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
      expect(await keys.nextv(2)).toEqual([1]);
    }
  });

  test('of a snapshot that was closed cannot be moved', async () => {
    await using db = await openStore<number, string>('test', options, spawnServer);
    await db.set(1, 'a');
    const snapshot = db.snapshot();
    const keys = snapshot.keys();
    await snapshot.close();
    keys.seek(1);
    await expect(keys.nextv(1)).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  });

  // A seek opened the scan anew over all writes until then.
  test('of a transaction shows none of its later writes, also after a seek', async () => {
    await using db = await openStore<number, string>('test', options, spawnServer);
    await db.setMany([
      [1, 'a'],
      [2, 'b'],
    ]);
    await using tx = await db.begin();
    tx.set(3, 'c');
    const entries = tx.entries();
    tx.set(2, 'later');
    tx.set(4, 'later');
    tx.deleteRange({ lt: 2 });
    entries.seek(0);
    expect(await entries.toArray()).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    expect(await tx.keys().toArray()).toEqual([2, 3, 4]);
  });

  test('of a transaction counts what it found behind a seek as read', async () => {
    await using db = await openStore<number, string>('test', options, spawnServer);
    await db.setMany([
      [1, 'a'],
      [5, 'b'],
    ]);
    for (const [key, isRead] of [
      [1, false],
      [5, true],
    ] as const) {
      const tx = await db.begin();
      const keys = tx.keys();
      keys.seek(4);
      expect(await keys.nextv(1)).toEqual([5]);
      await db.set(key, 'changed');
      tx.set(9, 'own');
      const committed = tx.commit();
      if (isRead) await expect(committed).rejects.toMatchObject({ code: 'VARVE_CONFLICT' });
      else await committed;
    }
  });
});
