/** The reads and writes of one transaction, of both stores, over the real engine. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { Store } from '../../js/src/store/store.ts';
import type { Transaction } from '../../js/src/store/transaction.ts';
import { SyncStore } from '../../js/src/synchronous/store.ts';
import type { SyncTransaction } from '../../js/src/synchronous.ts';
import type { Key, ScanOptions } from '../../js/src/types.ts';
import { Random } from './support/random.ts';
import { code, collect, conflict, openAsync, openSync } from './support/stores.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

type Either = Transaction<Key, unknown> | SyncTransaction<Key, unknown>;

/** The result of a read in a transaction, as text that can be compared. */
type Reading = (tx: Either) => unknown;

/** Runs writes and reads in one transaction. All of them are called before the reads are awaited. */
async function inTransaction(
  db: Store<Key, unknown> | SyncStore<Key, unknown>,
  steps: readonly ((tx: Either) => unknown)[],
): Promise<unknown[]> {
  if (db instanceof SyncStore) return db.transaction((tx) => ({ read: steps.map((step) => listed(step(tx))) })).read;
  return db.transaction(async (tx) => Promise.all(steps.map(async (step) => listed(await step(tx)))));
}

function listed(read: unknown): unknown {
  if (typeof read !== 'object' || read === null || Array.isArray(read)) return read;
  if (Symbol.asyncIterator in read) return collect(read as AsyncIterable<unknown>);
  return Symbol.iterator in read ? [...(read as Iterable<unknown>)] : read;
}

interface Bounds {
  readonly gt: number;
  readonly lte: number;
  readonly reverse?: boolean;
  readonly limit?: number | undefined;
}

/** Random reads and writes of one transaction, and the answers of a plain map. */
class Script {
  readonly steps: Reading[] = [];
  readonly wanted: unknown[] = [];
  readonly #random: Random;
  readonly #keys: number;
  readonly #model: Map<number, number>;

  constructor(random: Random, keys: number, model: Map<number, number>) {
    this.#random = random;
    this.#keys = keys;
    this.#model = model;
  }

  extend(): void {
    const roll = this.#random.below(12);
    if (roll < 4) this.#point(roll);
    else if (roll < 7) this.#range(roll);
    else this.#write(roll);
  }

  #point(roll: number): void {
    const model = this.#model;
    const [key, other] = [this.#random.below(this.#keys), this.#random.below(this.#keys)];
    if (roll === 0) this.#add((tx) => tx.get(key), model.get(key));
    if (roll === 1) this.#add((tx) => tx.has(key), model.has(key));
    if (roll === 2) this.#add((tx) => tx.getMany([key, other]), [model.get(key), model.get(other)]);
    if (roll === 3) this.#add((tx) => tx.hasMany([key, other]), [model.has(key), model.has(other)]);
  }

  #range(roll: number): void {
    const bounds = this.#bounds();
    const limit = this.#random.below(3) === 0 ? this.#random.below(10) : undefined;
    const options = { ...bounds, reverse: this.#random.below(2) === 0, limit };
    const found = this.#within(options);
    if (roll === 4) this.#add((tx) => tx.entries(options), found);
    else if (roll === 5) this.#add((tx) => tx.count(bounds), this.#within(bounds).length);
    else if (limit === undefined)
      this.#add(
        (tx) => tx.keys(options),
        found.map(([key]) => key),
      );
    else
      this.#add(
        (tx) => tx.values(options),
        found.map(([, value]) => value),
      );
  }

  #write(roll: number): void {
    const [key, value] = [this.#random.below(this.#keys), this.#random.below(1_000_000)];
    const bounds = this.#bounds();
    const isRare = this.#random.below(8) > 0;
    if (roll > 8) {
      this.#add((tx) => tx.set(key, value), undefined);
      this.#model.set(key, value);
    } else if (roll === 7 || isRare) {
      this.#add((tx) => tx.delete(key), undefined);
      this.#model.delete(key);
    } else if (this.#random.below(6) === 0) {
      this.#add((tx) => tx.clear(), undefined);
      this.#model.clear();
    } else {
      this.#add((tx) => tx.deleteRange(bounds), undefined);
      for (const [found] of this.#within(bounds)) this.#model.delete(found);
    }
  }

  #bounds(): Bounds {
    return { gt: this.#random.below(this.#keys) - 1, lte: this.#random.below(this.#keys) + 1 };
  }

  #within({ gt, lte, reverse, limit }: Bounds): [number, number][] {
    const found = [...this.#model].filter(([key]) => key > gt && key <= lte).sort(([a], [b]) => a - b);
    return (reverse === true ? found.reverse() : found).slice(0, limit);
  }

  #add(step: Reading, expected: unknown): void {
    this.steps.push(step);
    this.wanted.push(expected);
  }
}

describe.each([
  ['asynchronous', openAsync],
  ['synchronous', openSync],
])('a transaction of the %s store', (_, openEither) => {
  test('reads what it wrote, in front of the store, like one map', { timeout: 60_000 }, async () => {
    const db = await openEither();
    const model = new Map<number, number>();
    for (let seed = 1; seed <= 60; seed++) {
      const random = new Random(seed);
      const script = new Script(random, random.pick([5, 40, 1500]), model);
      for (let count = random.pick([3, 30, 300]); count > 0; count--) script.extend();
      const read = await inTransaction(db, script.steps);
      expect(await Promise.all(read), `seed ${seed}`).toStrictEqual(script.wanted);
      expect(await collect(db.entries()), `seed ${seed}`).toStrictEqual([...model].sort(([a], [b]) => a - b));
      if (seed % 10 === 0) await db.compact();
    }
    const { snapshots, scans } = await db.stats();
    expect([snapshots, scans]).toStrictEqual([0, 0]);
  });

  test('returns the result of its function, and writes everything', async () => {
    const db = await openEither();
    const write = (tx: Either): string => {
      tx.set('a', 1);
      tx.set('b', 2, { expiresIn: 1000 });
      return 'done';
    };
    expect(await (db instanceof SyncStore ? db.transaction(write) : db.transaction(async (tx) => write(tx)))).toBe(
      'done',
    );
    expect(await db.getMany(['a', 'b'])).toStrictEqual([1, 2]);
    expect((await db.getEntry('b'))?.expiresAt).toBeInstanceOf(Date);
  });

  test('that throws writes nothing', async () => {
    const db = await openEither();
    await db.set('a', 1);
    const failing = (tx: Either): never => {
      tx.set('a', 2);
      tx.clear();
      throw new Error('no');
    };
    await expect((async () => db.transaction(failing))()).rejects.toThrow('no');
    expect(await db.get('a')).toBe(1);
    expect((await db.stats()).snapshots).toBe(0);
  });

  test('is over when its function is', async () => {
    const db = await openEither();
    let kept: Either | undefined;
    let scan: AsyncIterableIterator<Key> | IterableIterator<Key> | undefined;
    await db.set('k', 1);
    await db.transaction((tx: Either) => {
      kept = tx;
      scan = tx.keys();
    });
    await expect((async () => kept?.get('k'))()).rejects.toThrow(code('VARVE_CLOSED'));
    await expect((async () => kept?.count())()).rejects.toThrow(code('VARVE_CLOSED'));
    for (const write of [() => kept?.set('k', 2), () => kept?.delete('k'), () => kept?.clear()]) {
      expect(write).toThrow(code('VARVE_CLOSED'));
    }
    expect(() => kept?.entries()).toThrow(code('VARVE_CLOSED'));
    await expect((async () => scan?.next())()).rejects.toThrow(code('VARVE_CLOSED'));
    expect((await db.stats()).scans).toBe(0);
    expect(await db.get('k')).toBe(1);
  });

  test('refuses invalid arguments', async () => {
    const db = await openEither();
    const run = (options: object) => async () => db.transaction(() => undefined, options);
    for (const options of [{ retries: -1 }, { retries: 0.5 }, { durability: 'paper' }]) {
      await expect(run(options)()).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    }
    await expect((async () => db.transaction((tx: Either) => tx.deleteRange({})))()).rejects.toThrow(
      code('VARVE_INVALID_ARGUMENT'),
    );
    await expect((async () => db.transaction((tx: Either) => tx.keys({ limit: -1 })))()).rejects.toThrow(
      code('VARVE_INVALID_ARGUMENT'),
    );
  });

  test('iterates over its own writes, too', async () => {
    const db = await openEither();
    await db.setMany([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    if (db instanceof SyncStore) {
      db.transaction((tx) => {
        for (const [key] of tx.entries()) {
          tx.set(key, 'seen');
          tx.set((key as number) + 10, 'new');
          tx.delete(2);
        }
      });
    } else {
      await db.transaction(async (tx) => {
        for await (const [key] of tx.entries()) {
          tx.set(key, 'seen');
          tx.set((key as number) + 10, 'new');
          tx.delete(2);
        }
      });
    }
    expect(await collect(db.keys())).toStrictEqual([1, 3, 11, 12, 13]);
  });

  test('that writes a key through the store after reading it conflicts with itself', async () => {
    const db = await openEither();
    await db.set('k', 1);
    let calls = 0;
    const meddle = (tx: Either): unknown => {
      calls++;
      const read = tx.get('k');
      tx.set('mine', 1);
      const wrote = db.set('k', calls);
      return db instanceof SyncStore ? undefined : Promise.all([read, wrote]);
    };
    const failed = (async () => db.transaction(meddle as () => undefined, { retries: 2 }))();
    await expect(failed).rejects.toThrow(conflict('k', 4));
    await expect(failed).rejects.toThrow('3 times: the key "k" has sequence 4');
    expect([calls, await db.has('mine')]).toStrictEqual([3, false]);
  });

  test('of 10,000 writes in random order is not slow', async () => {
    const db = await openEither();
    const random = new Random(3);
    const keys = Array.from({ length: 10_000 }, () => random.below(2 ** 31));
    const write = (tx: Either): void => {
      for (const key of keys) tx.set(key, key);
    };
    // If this were quadratic, it would not end within the time limit of a test.
    await (db instanceof SyncStore ? db.transaction(write) : db.transaction(async (tx) => write(tx)));
    expect(await db.count()).toBe(new Set(keys).size);
  });
});

test('once its code is loaded, a transaction reads the store as it was at the call', async () => {
  const db = await openAsync();
  await db.set('k', 1);
  await db.transaction(() => undefined);
  const read = db.transaction((tx) => tx.get('k'));
  await db.set('k', 2);
  expect(await read).toBe(1);
});

test('a synchronous transaction refuses a function that gives a promise', async () => {
  const db = await openSync();
  const run = (): unknown =>
    db.transaction(async (tx) => {
      tx.set('k', 1);
    });
  expect(run).toThrow(code('VARVE_INVALID_ARGUMENT'));
  expect([db.has('k'), db.stats().snapshots]).toStrictEqual([false, 0]);
});

test('a getter that writes while its value is being encoded is refused', async () => {
  const db = await openSync();
  expect(() =>
    db.transaction((tx) => {
      const meddling = {
        get value() {
          tx.set('other', 1);
          return 1;
        },
      };
      tx.set('k', meddling);
    }),
  ).toThrow(code('VARVE_INVALID_VALUE'));
  expect(db.count()).toBe(0);
});

// A long transaction once kept the last batch of each of its scans, some 20 KB, until it ended.
test.each([
  ['asynchronous', openAsync],
  ['synchronous', openSync],
])('a transaction of the %s store keeps what its scans have read, and not their batches', async (_, openEither) => {
  const db: Store<Key, unknown> | SyncStore<Key, unknown> = await openEither();
  for (let i = 0; i < 10; i++) await db.set(i, new Uint8Array(50_000));
  const tx = await db.begin();
  const buffers: WeakRef<object>[] = [];
  const scan = async (options: ScanOptions<Key>, isLeft: boolean) => {
    for await (const value of tx.values(options)) {
      buffers.push(new WeakRef((value as Uint8Array).buffer));
      if (isLeft) break;
    }
  };
  await scan({ gte: 3 }, true);
  await scan({ lt: 6, reverse: true }, true);
  await scan({ gte: 7, limit: 1 }, false);
  await scan({ lt: 1 }, false);
  expect(buffers.length).toBe(4);
  await expect
    .poll(() => {
      collectGarbage();
      return buffers.filter((buffer) => buffer.deref() !== undefined).length;
    })
    .toBe(0);
  tx.set('x', 1);
  // These were read by none of them: the scan from 3 went as far as 3, and the one from 6 back as far as 5.
  for (const key of [1, 2, 4, 8]) await db.set(key, 'other');
  await tx.commit();
  for (const [options, isLeft, key] of [
    [{ gte: 3 }, true, 3],
    [{ lt: 6, reverse: true }, true, 5],
    [{ gte: 7, limit: 1 }, false, 7],
    [{ lt: 1 }, false, 0],
  ] as const) {
    const again = await db.begin();
    for await (const _key of again.keys(options)) if (isLeft) break;
    again.set('x', 2);
    await db.set(key, 'other');
    await expect((async () => again.commit())()).rejects.toMatchObject({ conflict: { key } });
  }
});
