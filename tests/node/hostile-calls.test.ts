/**
 * User code that runs while a key or a value is encoded, and calls the store: getters, codecs, options. The call it makes is done or
 * refused. The outer call is written whole and under its own key.
 */

import { afterEach, describe, expect, test } from 'vitest';
import { json } from '../../js/src/codec/values.ts';
import { VarveError } from '../../js/src/errors.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import { Store } from '../../js/src/store/store.ts';
import type { Transaction } from '../../js/src/store/transaction.ts';
import { open, type SyncStore, type SyncTransaction } from '../../js/src/synchronous.ts';
import type { Durability, Key, KeyCodec, ValueCodec } from '../../js/src/types.ts';
import { spawnServer } from './support/engine.ts';
import { GONE_BYTES, gettingAt, LYING_BYTES, revoked } from './support/hostile-makers.ts';
import { contents, OPTIONS, problems } from './support/hostile-subjects.ts';
import { code } from './support/stores.ts';

type AnyStore = Store<Key, unknown> | SyncStore<Key, unknown>;

const stores: AnyStore[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) {
    expect(await problems(store)).toStrictEqual([]);
    await store.close();
  }
});

async function openAsync(options: Partial<OpenOptions<Key, unknown>> = {}): Promise<Store<Key, unknown>> {
  const store = await openStore<Key, unknown>('hostile', { ...OPTIONS, ...options }, spawnServer);
  stores.push(store);
  return store;
}

async function openSync(options: Partial<OpenOptions<Key, unknown>> = {}): Promise<SyncStore<Key, unknown>> {
  const { keys, values } = options;
  const store = await open<Key, unknown>('hostile', { ...OPTIONS, keys, values });
  stores.push(store);
  return store;
}

const TAIL = 'what follows '.repeat(400);

/** A value that makes a call while it is encoded, between two of its parts. */
function calling(call: () => void): { readonly plain: unknown; readonly value: unknown } {
  const value = Object.defineProperty({ head: 'what comes before', x: 0, tail: TAIL }, 'x', {
    enumerable: true,
    get: () => {
      call();
      return 1;
    },
  });
  return { value, plain: { head: 'what comes before', x: 1, tail: TAIL } };
}

/** A key that makes a call while it is encoded. */
function callingKey(call: () => void): Key {
  return gettingAt(['k', 0, 'z'], 1, () => {
    call();
    return 1;
  }) as Key;
}

const KEY: Key = ['k', 1, 'z'];

/** The outcome of a call; never an unhandled rejection. */
function outcomeOf(promise: unknown): Promise<unknown> {
  return Promise.resolve(promise).then(
    () => 'done',
    (error) => (error instanceof VarveError ? error.code : error),
  );
}

describe('the asynchronous store', () => {
  const REFUSED: readonly (readonly [string, (db: Store<Key, unknown>) => unknown])[] = [
    ['get', (db) => db.get('before')],
    ['getMany', (db) => db.getMany(['before', 'k'])],
    ['set', (db) => db.set('inner', TAIL)],
    ['delete', (db) => db.delete('before')],
    ['clear', (db) => db.clear()],
    ['setMany', (db) => db.setMany([['inner', 1]])],
    ['a scan', (db) => db.keys().next()],
    ['snapshot', (db) => db.snapshot().sequence],
    ['flush', (db) => db.flush()],
    ['stats', (db) => db.stats()],
    ['compact', (db) => db.compact()],
    ['close', (db) => db.close()],
  ];

  test.each(REFUSED)('%s is refused while a value is encoded, and disturbs nothing', async (_, call) => {
    const db = await openAsync();
    let inner: Promise<unknown> | undefined;
    const { value, plain } = calling(() => {
      inner = outcomeOf(call(db));
    });
    const written = [db.set('before', 1), db.set('k', value), db.set('z', 2)];
    await Promise.all(written);
    expect(await inner).toBe('VARVE_INVALID_ARGUMENT');
    expect(await contents(db)).toStrictEqual([
      ['before', 1],
      ['k', plain],
      ['z', 2],
    ]);
  });

  test.each(REFUSED)('%s is refused while a key is encoded, and disturbs nothing', async (_, call) => {
    const db = await openAsync();
    let inner: Promise<unknown> | undefined;
    const written = [
      db.set('before', 1),
      db.set(
        callingKey(() => (inner = outcomeOf(call(db)))),
        'v',
      ),
      db.set('z', 2),
    ];
    await Promise.all(written);
    expect(await inner).toBe('VARVE_INVALID_ARGUMENT');
    expect(await contents(db)).toStrictEqual([
      ['before', 1],
      ['z', 2],
      [KEY, 'v'],
    ]);
  });

  test('a signal that is aborted meanwhile takes nothing out of the frame', async () => {
    const db = await openAsync();
    const aborting = new AbortController();
    const before = outcomeOf(db.set('before', 1, { signal: aborting.signal }));
    const { value, plain } = calling(() => aborting.abort());
    await Promise.all([db.set('k', value), db.set('z', 2)]);
    expect(await before).toBe(aborting.signal.reason);
    expect(await db.getMany(['k', 'z'])).toStrictEqual([plain, 2]);
  });

  test('a batch is not committed out of its own write, nor written to', async () => {
    const db = await openAsync();
    const batch = db.batch().set('a', 1);
    const inner: Promise<unknown>[] = [];
    const { value, plain } = calling(() => {
      inner.push(outcomeOf(batch.commit()));
      expect(() => batch.set('inner', 1)).toThrow(code('VARVE_INVALID_ARGUMENT'));
    });
    await batch.set('k', value).set('z', 2).commit();
    expect(await Promise.all(inner)).toStrictEqual(['VARVE_INVALID_ARGUMENT']);
    expect(await contents(db)).toStrictEqual([
      ['a', 1],
      ['k', plain],
      ['z', 2],
    ]);
  });

  test('an option that is a getter is read once, and before anything is written', async () => {
    const db = await openAsync();
    const batch = db.batch();
    let reads = 0;
    const options = Object.defineProperty({}, 'expiresIn', {
      enumerable: true,
      get: () => {
        batch.set(`inner ${++reads}`, TAIL);
        return reads === 1 ? 1e9 : Number.NaN;
      },
    });
    await batch.set('k', 'v', options).commit();
    expect(reads).toBe(1);
    expect(await contents(db)).toStrictEqual([
      ['inner 1', TAIL],
      ['k', 'v'],
    ]);
  });
});

describe('the synchronous store', () => {
  const CALLS: readonly (readonly [string, (db: SyncStore<Key, unknown>) => unknown])[] = [
    ['get', (db) => db.get('before')],
    ['a scan', (db) => [...db.entries()].length],
    ['a snapshot', (db) => db.snapshot().close()],
    ['commit', (db) => db.commit({ durability: 'strict' })],
    ['a read of a transaction', (db) => db.transaction((tx) => tx.get('before'))],
  ];
  const WRITES: readonly (readonly [string, (db: SyncStore<Key, unknown>, value: unknown) => unknown])[] = [
    ['set', (db, value) => db.set('inner', value)],
    ['a large set, for which memory grows', (db, value) => db.set('inner', value)],
    ['a batch', (db, value) => db.batch().set('inner', value).commit()],
    ['a transaction', (db, value) => db.transaction((tx) => tx.set('inner', value))],
  ];

  test.each(CALLS)('%s is done while a key and a value are encoded, and disturbs neither', async (_, call) => {
    const db = await openSync();
    db.set('before', TAIL);
    const { value, plain } = calling(() => call(db));
    db.set(
      callingKey(() => call(db)),
      value,
    );
    expect([...db.entries()]).toStrictEqual([
      ['before', TAIL],
      [KEY, plain],
    ]);
  });

  test.each(WRITES)(
    '%s is done while a key is encoded, and neither takes the place of the other',
    async (name, call) => {
      for (const value of ['text', { structured: TAIL }, Uint8Array.of(1, 2, 3), 7]) {
        const db = await openSync();
        const large = new Uint8Array(name.includes('large') ? 2 ** 20 : 10).fill(5);
        db.set(
          callingKey(() => call(db, large)),
          value,
        );
        expect([...db.entries()]).toStrictEqual([
          ['inner', large],
          [KEY, value],
        ]);
        expect(db.get(callingKey(() => call(db, 'other')))).toStrictEqual(value);
        expect(db.get('inner')).toBe('other');
        db.delete(callingKey(() => call(db, 'another')));
        expect([...db.entries()]).toStrictEqual([['inner', 'another']]);
      }
    },
  );

  test('a set is refused while a value is encoded, and a batch is done', async () => {
    const db = await openSync();
    const { value, plain } = calling(() => {
      expect(() => db.set('inner', { a: 1 })).toThrow(code('VARVE_INVALID_ARGUMENT'));
      db.batch().set('from a batch', { a: 1 }).commit();
    });
    db.set('k', value);
    expect([...db.entries()]).toStrictEqual([
      ['from a batch', { a: 1 }],
      ['k', plain],
    ]);
  });

  test('a batch is not committed out of its own write', async () => {
    const db = await openSync();
    const batch = db.batch().set('a', 1);
    const { value, plain } = calling(() => {
      expect(() => batch.commit()).toThrow(code('VARVE_INVALID_ARGUMENT'));
    });
    batch.set('k', value).commit();
    expect([...db.entries()]).toStrictEqual([
      ['a', 1],
      ['k', plain],
    ]);
  });

  test('a store that is closed meanwhile loses nothing', async () => {
    const db = await openSync();
    let closed: Promise<void> | undefined;
    const { value } = calling(() => {
      closed = db.close();
    });
    db.set('k', value);
    await closed;
    expect(() => db.get('k')).toThrow(code('VARVE_CLOSED'));
    stores.splice(stores.indexOf(db), 1);
  });

  test('options that are getters find no batch under way', async () => {
    const db = await openSync();
    const options = Object.defineProperty({}, 'durability', {
      enumerable: true,
      get: (): Durability => {
        db.batch().set('inner', TAIL).set('inner 2', TAIL).commit();
        return 'strict';
      },
    });
    db.batch().set('k', 'v').set('l', 'w').commit(options);
    expect(db.set('m', 'x', options)).toStrictEqual({ sequence: db.getEntry('m')?.sequence, durability: 'strict' });
    expect([...db.entries()]).toStrictEqual([
      ['inner', TAIL],
      ['inner 2', TAIL],
      ['k', 'v'],
      ['l', 'w'],
      ['m', 'x'],
    ]);
  });

  test('a durability that there is not is refused before anything is written', async () => {
    const db = await openSync();
    db.set('k', 'v');
    const options = { durability: 'eternal' as Durability };
    for (const write of [
      () => db.set('k', 'w', options),
      () => db.delete('k', options),
      () => db.clear(options),
      () => db.setMany([['k', 'w']], options),
      () => db.batch().set('k', 'w').commit(options),
      () => db.transaction((tx) => tx.set('k', 'w'), options),
      () => db.set('k', 'w', { ...options, expiresIn: 1e9 }),
    ]) {
      expect(write).toThrow(code('VARVE_INVALID_ARGUMENT'));
    }
    expect([...db.entries()]).toStrictEqual([['k', 'v']]);
  });
});

/** A codec of keys that returns the bytes that the test gives it, and reads them unchanged. */
function giving(make: () => unknown): KeyCodec<Key> {
  return { name: 'giving', encode: make as () => Key, decode: (key) => key };
}

/** A codec of values that returns these bytes, and reads them as a copy. */
function encoding(make: () => unknown): ValueCodec<unknown> {
  return { name: 'encoding', encode: make as () => Uint8Array, decode: (bytes) => bytes.slice() };
}

describe.each<[string, (options: Partial<OpenOptions<Key, unknown>>) => Promise<AnyStore>]>([
  ['the asynchronous store', openAsync],
  ['the synchronous store', openSync],
])('%s with codecs', (_, openWith) => {
  test.each(LYING_BYTES)('a value codec that gives %s', async (_, make) => {
    const db = await openWith({ values: encoding(make) });
    await db.set('k', 1);
    expect(await db.get('k')).toStrictEqual(Uint8Array.of(1, 2, 3));
  });

  test.each(GONE_BYTES)('a value codec that gives %s', async (_, make) => {
    const db = await openWith({ values: encoding(make) });
    await expect((async () => db.set('k', 1))()).rejects.toThrow(code('VARVE_INVALID_VALUE'));
    expect(await contents(db)).toStrictEqual([]);
  });

  test.each(LYING_BYTES)('a key codec that gives %s', async (_, make) => {
    const db = await openWith({ keys: giving(make) });
    await db.set('k', 1);
    expect(await contents(db)).toStrictEqual([[Uint8Array.of(1, 2, 3), 1]]);
    expect(await db.count({ gte: 'k', lte: 'k' })).toBe(1);
  });

  test.each<readonly [string, () => unknown]>([
    ...GONE_BYTES,
    ['a promise', async () => 'k'],
    ['a revoked proxy', () => revoked([])],
    ['nothing', () => undefined],
  ])('a key codec that gives %s', async (_, make) => {
    const db = await openWith({ keys: giving(make) });
    for (const call of [
      () => db.set('k', 1),
      () => db.get('k'),
      () => db.delete('k'),
      () => db.count({ gte: 'k' }),
      () => db.batch().set('k', 1),
    ]) {
      await expect((async () => call())()).rejects.toThrow(code('VARVE_INVALID_KEY'));
    }
  });

  test('JSON that calls, throws or lies', async () => {
    const db = await openWith({ values: json });
    await db.set('k', { toJSON: () => ({ plain: 1 }) });
    expect(await db.get('k')).toStrictEqual({ plain: 1 });
    const refused = [revoked({}), revoked([]), { toJSON: () => revoked({}) }, { toJSON: () => undefined }, 1n, () => 1];
    for (const value of refused) {
      await expect((async () => db.set('k', value))()).rejects.toThrow(code('VARVE_INVALID_VALUE'));
    }
    expect(await contents(db)).toStrictEqual([['k', { plain: 1 }]]);
  });
});

/** Options whose properties are getters of a class. */
function inherited<T extends object>(options: T): T {
  const getters = Object.entries(options).map(([name, value]) => [name, { get: () => value }]);
  return Object.create(Object.defineProperties({}, Object.fromEntries(getters))) as T;
}

describe.each<[string, () => Promise<AnyStore>]>([
  ['the asynchronous store', openAsync],
  ['the synchronous store', openSync],
])('%s heeds options that are inherited', (_, openEither) => {
  test('of writes', async () => {
    const db = await openEither();
    const far = new Date(8e15);
    const conflicting = code('VARVE_CONFLICT');
    await db.set('k', 1, inherited({ expiresAt: far }));
    await db
      .batch()
      .set('l', 2, inherited({ expiresAt: far.getTime() }))
      .commit();
    expect((await db.getEntry('k'))?.expiresAt).toStrictEqual(far);
    expect((await db.getEntry('l'))?.expiresAt).toStrictEqual(far);
    for (const write of [
      () => db.set('k', 3, inherited({ ifSequence: null })),
      () =>
        db
          .batch()
          .set('k', 3, inherited({ ifSequence: null }))
          .commit(),
      () => db.delete('k', inherited({ ifSequence: 99 })),
      () =>
        db
          .batch()
          .delete('k', inherited({ ifSequence: 99 }))
          .commit(),
    ]) {
      await expect((async () => write())()).rejects.toThrow(conflicting);
    }
    const strict = () => inherited({ durability: 'strict' as const });
    expect(await db.update('k', () => 4, strict())).toMatchObject({ durability: 'strict' });
    expect((await db.getEntry('k'))?.expiresAt).toStrictEqual(far);
    await db.transaction((tx: { set(key: Key, value: unknown, options?: object): void }) => {
      tx.set('m', 1, inherited({ expiresAt: far }));
    }, strict());
    expect((await db.getEntry('m'))?.expiresAt).toStrictEqual(far);
    await db.update('k', () => 5, inherited({ expiresIn: null }));
    expect(await db.getEntry('k')).toMatchObject({ value: 5, expiresAt: undefined });
  });

  test('of reads', async () => {
    const db = await openEither();
    await db.setMany(['a', 'b', 'c', 'd'].map((key) => [key, 1] as const));
    const last = () => inherited({ gte: 'b', reverse: true, limit: 2 });
    const from = () => inherited({ gt: 'b' });
    const keysOf = async (keys: AsyncIterable<Key> | Iterable<Key>): Promise<Key[]> => {
      const all: Key[] = [];
      for await (const key of keys) all.push(key);
      return all;
    };
    const snapshot = db.snapshot();
    for (const view of [db, snapshot]) {
      expect(await keysOf(view.keys(last()))).toStrictEqual(['d', 'c']);
      expect(await view.count(from())).toBe(2);
    }
    await snapshot.close();
    const inside = (write: boolean) => (tx: Transaction<Key, unknown> | SyncTransaction<Key, unknown>) => {
      if (write) tx.set('cc', 1);
      return [tx.count(from()), tx.keys(last())] as const;
    };
    for (const write of [false, true]) {
      if (db instanceof Store) {
        await db.transaction(async (tx) => {
          const [count, keys] = inside(write)(tx);
          expect(await count).toBe(write ? 3 : 2);
          expect(await keysOf(keys)).toStrictEqual(write ? ['d', 'cc'] : ['d', 'c']);
        });
      } else {
        db.transaction((tx) => {
          const [count, keys] = inside(write)(tx);
          expect(count).toBe(write ? 3 : 2);
          expect([...(keys as Iterable<Key>)]).toStrictEqual(write ? ['d', 'cc'] : ['d', 'c']);
        });
      }
    }
    await db.deleteRange(from());
    expect(await db.count()).toBe(2);
  });
});

test('a transaction that counts by options that are inherited has read that range alone', async () => {
  const db = await openAsync();
  await db.set('a', 1);
  await db.transaction(
    async (tx) => {
      tx.set('n', await tx.count(inherited({ gte: 'x' })));
      await db.set('b', 1);
    },
    { retries: 0 },
  );
  expect(await db.get('n')).toBe(0);
});

test.each(LYING_BYTES)('a prefix of %s', async (_, make) => {
  const db = await openSync();
  db.setMany([
    [Uint8Array.of(1, 2, 3, 4), 1],
    [['k', Uint8Array.of(1, 2, 3), 4], 2],
    [Uint8Array.of(1, 2, 4), 3],
  ]);
  expect(db.count({ prefix: make() })).toBe(1);
  expect(db.count({ prefix: ['k', make()] })).toBe(1);
  db.deleteRange({ prefix: make() });
  expect(db.count()).toBe(2);
});

test.each<readonly [string, () => unknown]>([...GONE_BYTES, ['a revoked proxy', () => revoked([])]])(
  'a prefix, a bound and a key to watch of %s are refused',
  async (_, make) => {
    const db = await openAsync();
    const key = make as () => Key;
    for (const call of [
      () => db.count({ prefix: key() as string }),
      () => db.keys({ prefix: ['k', key()] }),
      () => db.keys({ gt: key() }),
      () => db.deleteRange({ lt: key() }),
      () => db.watch(key()),
      () => db.live(key()),
      () => db.hasMany(['k', key()]),
    ]) {
      await expect((async () => call())()).rejects.toThrow(code('VARVE_INVALID_KEY'));
    }
  },
);
