/** The store over a fake engine: what each method sends, and how it reads the answer. */

import { describe, expect, expectTypeOf, test } from 'vitest';
import { bytes, structured, utf8 } from '../../js/src/codec/values.ts';
import { open } from '../../js/src/index.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key, KeyCodec } from '../../js/src/types.ts';
import { openFake } from './support/open-fake.ts';

const code = (expected: string): unknown => expect.objectContaining({ code: expected });

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('reading and writing', () => {
  test('values of all kinds come back', async () => {
    const { db } = await openFake();
    const values = [
      null,
      1,
      -0,
      'text',
      '',
      5n,
      new Uint8Array([1, 2]),
      new Uint8Array(),
      { a: [1] },
      new Map([[1, 2]]),
      new Date(5),
    ];
    for (const [i, value] of values.entries()) await db.set(i, value);
    expect(await db.getMany(values.keys())).toStrictEqual(values);
    for (const [i, value] of values.entries()) expect(await db.get(i)).toStrictEqual(value);
  });

  test('a missing key reads as undefined', async () => {
    const { db } = await openFake();
    expect(await db.get('a')).toBe(undefined);
    expect(await db.getEntry('a')).toBe(undefined);
    expect(await db.has('a')).toBe(false);
  });

  test('getEntry returns the sequence and the expiry', async () => {
    const { db, engine } = await openFake<string, number>();
    await db.setMany([
      ['a', 1],
      ['b', 2],
    ]);
    engine.expiries.set('\x20b', 1_700_000_000_000);
    expect(await db.getEntry('a')).toEqual({ value: 1, sequence: 1, expiresAt: undefined });
    expect(await db.getEntry('b')).toEqual({ value: 2, sequence: 2, expiresAt: new Date(1_700_000_000_000) });
  });

  test('has and hasMany move no values', async () => {
    const { db, engine } = await openFake<string, Uint8Array>();
    await db.set('a', new Uint8Array(10_000));
    expect(await db.hasMany(['a', 'b', 'a'])).toEqual([true, false, true]);
    expect(engine.frames.length).toBe(2);
    expect(engine.answerBytes[1]).toBeLessThan(100);
  });

  test('getMany keeps the order, also of missing and repeated keys', async () => {
    const { db, engine } = await openFake<string, number>();
    await db.setMany([
      ['a', 1],
      ['b', 2],
    ]);
    expect(await db.getMany(new Set(['b', 'x', 'a']))).toEqual([2, undefined, 1]);
    expect(await db.getMany(['b', 'b'])).toEqual([2, 2]);
    expect(await db.getMany([])).toEqual([]);
    expect(engine.ops.map(({ op }) => op)).toEqual([6, 10, 10, 10]);
  });

  test('delete, deleteRange and clear remove their entries and no others', async () => {
    const { db } = await openFake<Key, number>();
    const fill = (): Promise<unknown> =>
      db.setMany([
        ['a', 1],
        ['b', 2],
        ['c', 3],
        [['n'], 4],
        [['n', 1], 5],
      ]);
    await fill();
    await db.delete('b');
    expect(await collect(db.keys())).toEqual(['a', 'c', ['n'], ['n', 1]]);
    await db.deleteRange({ prefix: ['n'] });
    expect(await collect(db.keys())).toEqual(['a', 'c']);
    await db.deleteRange({ gt: 'a', lte: 'c' });
    expect(await collect(db.keys())).toEqual(['a']);
    await fill();
    expect(await db.deleteRange({ gt: 'b', lt: 'a' })).toMatchObject({ durability: 'relaxed' });
    expect((await collect(db.keys())).length).toBe(5);
    await db.clear();
    expect(await collect(db.keys())).toEqual([]);
  });

  test('deleteRange without a bound is refused', async () => {
    const { db } = await openFake();
    await expect(db.deleteRange({})).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(() => db.batch().deleteRange({ prefix: undefined })).toThrow(code('VARVE_INVALID_ARGUMENT'));
  });

  test('flush, stats and compact reach the engine in order', async () => {
    const { db, engine } = await openFake<string, number>();
    const set = db.set('a', 1);
    const flush = db.flush();
    const stats = db.stats();
    await Promise.all([set, flush, db.compact()]);
    expect(await stats).toEqual({ called: 'stats' });
    expect(engine.frames.map((ops) => ops.map(({ op }) => op))).toEqual([[4, 12]]);
    expect(engine.messages.map((message) => (message.type === 'call' ? message.method : message.type))).toEqual([
      'open',
      'stats',
      'compact',
    ]);
  });
});

describe('durability', () => {
  test("of a write is its own, else the store's, else relaxed", async () => {
    const { db, engine } = await openFake<string, number>();
    expect(await db.set('a', 1)).toEqual({ sequence: 1, durability: 'relaxed' });
    expect((await db.set('a', 1, { durability: 'strict' })).durability).toBe('strict');
    expect((await db.batch().set('a', 1).commit({ durability: 'memory' })).durability).toBe('memory');
    expect(engine.ops.map(({ level }) => level)).toEqual([2, 3, 1]);
    const strict = await openFake<string, number>({ durability: 'strict' });
    expect((await strict.db.delete('a')).durability).toBe('strict');
    expect((await strict.db.clear({ durability: 'relaxed' })).durability).toBe('relaxed');
  });

  test('of a read is none', async () => {
    const { db, engine } = await openFake<string, number>();
    await Promise.all([db.get('a'), db.has('a'), db.getMany(['a']), db.flush(), collect(db.keys())]);
    expect(engine.ops.map(({ level }) => level)).toEqual([0, 0, 0, 0, 0]);
  });

  test('that is no level is refused', async () => {
    const { db } = await openFake<string, number>();
    await expect(db.set('a', 1, { durability: 'paranoid' as never })).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
  });
});

describe('a batch', () => {
  test('is one operation, applied in order', async () => {
    const { db, engine } = await openFake<string, number>();
    await db.set('old', 0);
    const batch = db.batch().set('a', 1).set('b', 2).delete('a').deleteRange({ prefix: 'o' }).set('c', 3);
    expect(batch.size).toBe(5);
    expect(await batch.commit()).toEqual({ sequence: 6, durability: 'relaxed' });
    expect(engine.ops.map(({ op }) => op)).toEqual([4, 6]);
    expect(await collect(db.entries())).toEqual([
      ['b', 2],
      ['c', 3],
    ]);
  });

  test('is encoded as it is built', async () => {
    const { db } = await openFake<string, { n: number }>();
    const value = { n: 1 };
    const batch = db.batch().set('a', value);
    value.n = 2;
    await batch.commit();
    expect(await db.get('a')).toEqual({ n: 1 });
  });

  test('keeps what it had when an addition is refused', async () => {
    const { db } = await openFake<Key, unknown>();
    const batch = db.batch().set('a', 1);
    expect(() => batch.set('b', () => 1)).toThrow(code('VARVE_INVALID_VALUE'));
    expect(() => batch.delete(Number.NaN)).toThrow(code('VARVE_INVALID_KEY'));
    await batch.set('c', 2).commit();
    expect(await collect(db)).toEqual([
      ['a', 1],
      ['c', 2],
    ]);
  });

  test('is committed once', async () => {
    const { db } = await openFake<string, number>();
    const batch = db.batch().set('a', 1);
    await batch.commit();
    await expect(batch.commit()).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(() => batch.set('b', 2)).toThrow(code('VARVE_INVALID_ARGUMENT'));
  });

  test('of setMany is all or nothing', async () => {
    const { db, engine } = await openFake<string, unknown>();
    await expect(
      db.setMany([
        ['a', 1],
        ['b', () => 1],
      ]),
    ).rejects.toThrow(code('VARVE_INVALID_VALUE'));
    expect(engine.ops).toEqual([]);
    expect(
      (
        await db.setMany(
          new Map([
            ['a', 1],
            ['b', 2],
          ]),
        )
      ).sequence,
    ).toBe(2);
    expect(engine.ops.map(({ op }) => op)).toEqual([6]);
  });
});

describe('codecs', () => {
  test('of values decide what is stored', async () => {
    const { db } = await openFake<string, Uint8Array>({ values: bytes });
    await db.set('a', new Uint8Array([1]));
    expect(await db.get('a')).toEqual(new Uint8Array([1]));
    await expect(db.set('b', 'text' as never)).rejects.toThrow(code('VARVE_INVALID_VALUE'));
  });

  test('of keys map the keys everywhere', async () => {
    interface User {
      team: string;
      id: number;
    }
    const users: KeyCodec<User> = {
      name: 'users',
      encode: ({ team, id }) => [team, id],
      decode: (key) => {
        const [team, id] = key as [string, number];
        return { team, id };
      },
    };
    const { db } = await openFake<User, number>({ keys: users });
    const [a, b, c] = [
      { team: 'x', id: 9 },
      { team: 'x', id: 10 },
      { team: 'y', id: 1 },
    ];
    await db.setMany([
      [c, 3],
      [a, 1],
      [b, 2],
    ]);
    expect(await db.getMany([a, b])).toEqual([1, 2]);
    expect(await collect(db.keys())).toEqual([a, b, c]);
    expect(await collect(db.entries({ gt: a }))).toEqual([
      [b, 2],
      [c, 3],
    ]);
    expect(await collect(db.values({ prefix: ['x'], reverse: true }))).toEqual([2, 1]);
    await db.deleteRange({ gte: b });
    expect(await collect(db.keys())).toEqual([a]);
  });

  test('of keys that fail reject the call', async () => {
    const broken: KeyCodec<string> = {
      name: 'broken',
      encode: () => {
        throw new RangeError('no');
      },
      decode: () => '',
    };
    const { db } = await openFake({ keys: broken });
    await expect(db.get('a')).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY', cause: new RangeError('no') });
  });

  test('that call the store while encoding are refused', async () => {
    const { db } = await openFake<string, unknown>();
    let inner: Promise<unknown> = Promise.resolve();
    const value = {
      get inner() {
        inner = db.get('b');
        // Awaited below, after the write.
        inner.catch(() => undefined);
        return 1;
      },
    };
    await db.set('a', value);
    await expect(inner).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(await db.get('a')).toEqual({ inner: 1 });
  });

  test('give the store its types', () => {
    const note = structured.as<{ title: string }>();
    const worker = (): never => {
      throw new Error('not started');
    };
    const stores = [
      () => open('n', { worker, values: note }),
      () => open('n', { worker, values: utf8 }),
      () => open<string, number>('n', { worker }),
      () => open('n', { worker }),
    ] as const;
    expectTypeOf(stores[0]).returns.resolves.toEqualTypeOf<Store<Key, { title: string }>>();
    expectTypeOf(stores[1]).returns.resolves.toEqualTypeOf<Store<Key, string>>();
    expectTypeOf(stores[2]).returns.resolves.toEqualTypeOf<Store<string, number>>();
    expectTypeOf(stores[3]).returns.resolves.toEqualTypeOf<Store<Key, unknown>>();
    expectTypeOf<Store<string, number>['get']>().returns.resolves.toEqualTypeOf<number | undefined>();
  });
});
