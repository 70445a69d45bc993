/** Lifetimes and conditions of writes, in both stores over the real engine. */

import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { collect, conflict, openAsync, openSync } from './support/stores.ts';

/** Time passes; timers and turns do not wait for it. */
function setTime(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: ms });
}

const T0 = 2_000_000_000_000;

describe('entries that expire', () => {
  // A laptop started with its clock two hours ahead, and set it right a moment later. For two hours a session was absent as soon as it
  // was written, and a code for a minute never expired.
  test('have the right lifetimes once a clock that was ahead is set right', async () => {
    const HOUR = 3_600_000;
    setTime(T0);
    const db = await openAsync();
    const inTurn = await openSync();
    for (const store of [db, inTurn]) {
      setTime(T0 + 2 * HOUR);
      await store.set('any', 1);
      setTime(T0);
      await store.set('session', 1, { expiresAt: T0 + HOUR });
      await store.set('code', 2, { expiresIn: 60_000 });
      expect((await store.getEntry('session'))?.expiresAt).toStrictEqual(new Date(T0 + HOUR));
      expect((await store.getEntry('code'))?.expiresAt).toStrictEqual(new Date(T0 + 60_000));
      const next = await openAsync();
      await next.import(store.export());
      expect((await next.getEntry('session'))?.expiresAt).toStrictEqual(new Date(T0 + HOUR));
      setTime(T0 + 60_000);
      expect([await store.get('session'), await store.get('code')]).toStrictEqual([1, undefined]);
      await store.update('session', () => 3);
      setTime(T0 + HOUR - 1);
      expect(await store.get('session')).toBe(3);
      setTime(T0 + HOUR);
      expect(await store.get('session')).toBe(undefined);
    }
  });

  test('are absent to every read of the asynchronous store from their time on', async () => {
    setTime(T0);
    const db = await openAsync();
    await db.set('short', 1, { expiresIn: 100 });
    await db.batch().set('batched', 2, { expiresIn: 200.5 }).set('kept', 3).commit();
    expect((await db.getEntry('short'))?.expiresAt).toStrictEqual(new Date(T0 + 100));
    expect((await db.getEntry('batched'))?.expiresAt).toStrictEqual(new Date(T0 + 201));
    setTime(T0 + 99);
    expect(await db.get('short')).toBe(1);
    setTime(T0 + 100);
    expect(await db.get('short')).toBe(undefined);
    expect(await db.has('short')).toBe(false);
    expect(await db.getEntry('short')).toBe(undefined);
    expect(await db.getMany(['short', 'batched'])).toStrictEqual([undefined, 2]);
    expect(await collect(db.keys())).toStrictEqual(['batched', 'kept']);
    setTime(T0 + 201);
    expect(await collect(db.keys())).toStrictEqual(['kept']);
    await db.compact();
    setTime(T0);
    expect(await collect(db.keys()), 'a clock that goes back brings nothing back').toStrictEqual(['kept']);
  });

  test('are absent to the synchronous store from the next turn on', async () => {
    setTime(T0);
    const db = await openSync();
    db.set('short', 1, { expiresIn: 100 });
    expect(db.getEntry('short')?.expiresAt).toStrictEqual(new Date(T0 + 100));
    setTime(T0 + 100);
    expect(db.has('short'), 'time stands still within a turn').toBe(true);
    await Promise.resolve();
    expect(db.get('short')).toBe(undefined);
    expect(db.has('short')).toBe(false);
    expect([...db.keys()]).toStrictEqual([]);
  });

  test('a set without a lifetime takes it away', async () => {
    setTime(T0);
    const db = await openAsync();
    await db.set('k', 1, { expiresIn: 100 });
    await db.set('k', 2);
    setTime(T0 + 1000);
    expect(await db.getEntry('k')).toStrictEqual({ value: 2, sequence: 2, expiresAt: undefined });
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5' as unknown as number])(
    'a lifetime of %s is refused',
    async (expiresIn) => {
      const db = await openAsync();
      const code = expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' });
      await expect(db.set('k', 1, { expiresIn })).rejects.toThrow(code);
      expect(() => db.batch().set('k', 1, { expiresIn })).toThrow(code);
      expect(await db.has('k')).toBe(false);
    },
  );
});

describe('conditions', () => {
  test('write only to what was read, in the asynchronous store', async () => {
    const db = await openAsync();
    const first = await db.set(['k', 1], 'a', { ifSequence: null });
    await expect(db.set(['k', 1], 'b', { ifSequence: null })).rejects.toThrow(conflict(['k', 1], first.sequence));
    const second = await db.set(['k', 1], 'b', { ifSequence: first.sequence });
    await expect(db.delete(['k', 1], { ifSequence: first.sequence })).rejects.toThrow(
      conflict(['k', 1], second.sequence),
    );
    await expect(db.set('none', 1, { ifSequence: 7 })).rejects.toThrow(conflict('none', null));
    expect(await db.get(['k', 1])).toBe('b');
    await db.delete(['k', 1], { ifSequence: second.sequence });
    expect(await db.has(['k', 1])).toBe(false);
  });

  test('write only to what was read, in the synchronous store', async () => {
    const db = await openSync();
    const first = db.set('k', 'a', { ifSequence: null });
    expect(() => db.set('k', 'b', { ifSequence: null })).toThrow(conflict('k', first.sequence));
    const second = db.set('k', 'b', { ifSequence: first.sequence, durability: 'strict' });
    expect(second.durability).toBe('strict');
    expect(() => db.delete('k', { ifSequence: first.sequence })).toThrow(conflict('k', second.sequence));
    expect(() => db.delete('none', { ifSequence: 7 })).toThrow(conflict('none', null));
    db.delete('k', { ifSequence: second.sequence });
    expect(db.has('k')).toBe(false);
  });

  test('the message names the key and what was found', async () => {
    const db = await openAsync();
    await db.set(['k', 1n, new Date(0)], 1);
    await expect(db.set(['k', 1n, new Date(0)], 2, { ifSequence: null })).rejects.toThrow(
      'the key ["k", 1n, 1970-01-01T00:00:00.000Z] has sequence 1.',
    );
  });

  test('of a batch are all true, or nothing of it is written', async () => {
    for (const db of [await openAsync(), await openSync()]) {
      const { sequence } = await db.set('taken', 1);
      const batch = db
        .batch()
        .set('free', 1)
        .delete('taken', { ifSequence: sequence })
        .set('other', 1, { ifSequence: 9 });
      await expect((async () => batch.commit())()).rejects.toThrow(conflict('other', null));
      expect([await db.has('free'), await db.has('taken')]).toStrictEqual([false, true]);
      await db.batch().set('free', 1).delete('taken', { ifSequence: sequence }).commit();
      expect([await db.has('free'), await db.has('taken')]).toStrictEqual([true, false]);
    }
  });

  test('of writes in one turn see one another in order', async () => {
    const db = await openAsync();
    const writes = [1, 2, 3].map((value) => db.set('k', value, { ifSequence: null }));
    const outcomes = (await Promise.allSettled(writes)).map(({ status }) => status);
    expect(outcomes).toStrictEqual(['fulfilled', 'rejected', 'rejected']);
    expect(await db.get('k')).toBe(1);
  });

  test.each([0, -1, 1.5, Number.NaN, '1' as unknown as number])('the sequence %s is refused', async (ifSequence) => {
    const db = await openAsync();
    const code = expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' });
    await expect(db.set('k', 1, { ifSequence })).rejects.toThrow(code);
    await expect(db.delete('k', { ifSequence })).rejects.toThrow(code);
  });

  // A lock was taken with `{ ifSequence: (await db.getEntry(k))?.sequence }`: for an absent key that is undefined, and the write had no
  // condition. Two tabs had the lock.
  test('a sequence that is there and undefined is refused by every write', async () => {
    const inherited = Object.create({ ifSequence: undefined }) as { ifSequence?: number };
    for (const db of [await openAsync(), await openSync()]) {
      const { sequence } = await db.set('k', 1);
      for (const options of [{ ifSequence: (await db.getEntry('none'))?.sequence as never }, inherited]) {
        for (const write of [
          () => db.set('k', 2, options),
          () => db.set('k', 2, { ...options, ifSequence: undefined as never, expiresIn: 9 }),
          () => db.delete('k', options),
          () => db.delete('k', { ifSequence: undefined as never, existed: true }),
          () => db.at(['part']).set('k', 2, options),
          () => db.batch().set('other', 1).set('k', 2, options).commit(),
          () => db.batch().set('other', 1).delete('k', options).commit(),
        ])
          await expect((async () => write())()).rejects.toMatchObject({
            code: 'VARVE_INVALID_ARGUMENT',
            message: 'ifSequence is the sequence of an entry, or null for none, not undefined.',
          });
      }
      expect(await db.getEntry('k')).toMatchObject({ value: 1, sequence });
      expect(await db.count()).toBe(1);
      await db.set('k', 2, {});
      expect((await db.delete('k', { existed: true })).existed).toBe(true);
    }
  });
});

describe('a delete that asks', () => {
  test('reports whether the key was there, in both stores', async () => {
    setTime(T0);
    for (const db of [await openAsync(), await openSync()]) {
      const asks = { existed: true } as const;
      await db.set('k', 1);
      await db.set('short', 1, { expiresIn: 5 });
      const receipt = await db.delete('k', { ...asks, durability: 'strict' });
      expect(receipt).toStrictEqual({ existed: true, sequence: 3, durability: 'strict' });
      expectTypeOf(receipt.existed).toEqualTypeOf<boolean>();
      expect((await db.delete('k', asks)).existed).toBe(false);
      expect(await db.delete('k')).not.toHaveProperty('existed');
      expect(await db.delete('k', { existed: false })).not.toHaveProperty('existed');
      const { sequence } = await db.set('k', 2);
      expect((await db.delete('k', { ...asks, ifSequence: sequence })).existed).toBe(true);
      expect((await db.delete('k', { ...asks, ifSequence: null })).existed).toBe(false);
      await expect((async () => db.delete('k', { ...asks, ifSequence: sequence }))()).rejects.toThrow(
        conflict('k', null),
      );
      setTime(T0 + 5);
      expect((await db.delete('short', asks)).existed).toBe(false);
      setTime(T0);
    }
  });

  test('sees the writes that were called before it, and only one of several finds the key', async () => {
    const db = await openAsync();
    void db.set('k', 1);
    const found = [1, 2, 3].map(async () => (await db.delete('k', { existed: true })).existed);
    void db.set('k', 2);
    expect(await Promise.all(found)).toStrictEqual([true, false, false]);
    expect(await db.get('k')).toBe(2);
  });
});

describe('update', () => {
  test('loses no update when others update the same key', async () => {
    const db = await openAsync();
    const add = (n: unknown): number => ((n as number | undefined) ?? 0) + 1;
    await Promise.all(Array.from({ length: 10 }, () => db.update('n', add)));
    expect(await db.get('n')).toBe(10);
  });

  test('waits for a function that does, and takes options of a set', async () => {
    setTime(T0);
    const db = await openAsync();
    const later = async (value: unknown): Promise<string> => `${String(value)}!`;
    const receipt = await db.update('k', later, { durability: 'strict', expiresIn: 5 });
    expect(receipt.durability).toBe('strict');
    expect(await db.getEntry('k')).toStrictEqual({ value: 'undefined!', sequence: 1, expiresAt: new Date(T0 + 5) });
  });

  test('passes on the error of the function, and writes nothing', async () => {
    const db = await openAsync();
    const failing = (): never => {
      throw new Error('no');
    };
    await expect(db.update('k', failing)).rejects.toThrow('no');
    expect(await db.has('k')).toBe(false);
  });

  test('of the synchronous store calls again when the function wrote the key itself', async () => {
    const db = await openSync();
    let calls = 0;
    db.update('k', (value) => {
      if (++calls === 1) db.set('k', 'meddled');
      return `${String(value)}!`;
    });
    expect([calls, db.get('k')]).toStrictEqual([2, 'meddled!']);
  });
});
