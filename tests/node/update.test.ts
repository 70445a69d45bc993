/** Updates and transactions that need the same key: of one client, of several clients, and inside one another. */

import { afterEach, describe, expect, test, vi } from 'vitest';
import { VarveError } from '../../js/src/errors.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { SyncStore } from '../../js/src/synchronous.ts';
import type { Key, UpdateLifetime } from '../../js/src/types.ts';
import { add, code, conflict, openAsync, openSync, openTabs } from './support/stores.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const T0 = 2_000_000_000_000;

/** Time passes; timers and turns do not wait for it. */
function setTime(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: ms });
}

/** Waits that end at once. */
function withoutWaiting(): void {
  vi.spyOn(Math, 'random').mockReturnValue(0);
}

const times = <T>(count: number, call: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => call(i)));

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('an expiry', () => {
  test.each([
    ['an update', (db: Store<Key, unknown>, options?: object) => db.update('k', add, options)],
    [
      'an update in a transaction',
      (db: Store<Key, unknown>, options?: object) => db.transaction((tx) => tx.update('k', add, options)),
    ],
  ])('is kept by %s, replaced, and dropped', async (_, update) => {
    setTime(T0);
    const db = await openAsync();
    await db.set('k', 0, { expiresIn: 1000 });
    setTime(T0 + 500);
    await update(db);
    expect(await db.getEntry('k')).toMatchObject({ value: 1, expiresAt: new Date(T0 + 1000) });
    await update(db, { expiresIn: 2000 });
    expect(await db.getEntry('k')).toMatchObject({ value: 2, expiresAt: new Date(T0 + 2500) });
    await update(db, { expiresAt: T0 + 3000 });
    expect(await db.getEntry('k')).toMatchObject({ value: 3, expiresAt: new Date(T0 + 3000) });
    await update(db, { expiresIn: null });
    expect(await db.getEntry('k')).toMatchObject({ value: 4, expiresAt: undefined });
    await update(db, { expiresAt: new Date(T0 + 4000) });
    setTime(T0 + 4000);
    await update(db);
    expect(await db.getEntry('k'), 'expired properties are absent').toMatchObject({ value: 1, expiresAt: undefined });
  });

  test.each([
    ['an update', (db: Awaited<ReturnType<typeof openSync>>, options?: object) => db.update('k', add, options)],
    [
      'an update in a transaction',
      (db: Awaited<ReturnType<typeof openSync>>, options?: object) =>
        db.transaction((tx) => tx.update('k', add, options)),
    ],
  ])('is kept by %s of the synchronous store, replaced, and dropped', async (_, update) => {
    setTime(T0);
    const db = await openSync();
    db.set('k', 0, { expiresIn: 1000 });
    await tick();
    setTime(T0 + 500);
    update(db);
    expect(db.getEntry('k')).toMatchObject({ value: 1, expiresAt: new Date(T0 + 1000) });
    update(db, { expiresIn: 2000 });
    expect(db.getEntry('k')).toMatchObject({ value: 2, expiresAt: new Date(T0 + 2500) });
    update(db, { expiresIn: null });
    expect(db.getEntry('k')).toMatchObject({ value: 3, expiresAt: undefined });
  });

  test.each([
    ['asynchronous', openAsync],
    ['synchronous', openSync],
  ])('that was read from an %s store can be written again, also if there is none', async (_, openEither) => {
    setTime(T0);
    const db: Store<Key, unknown> | SyncStore<Key, unknown> = await openEither();
    await db.set('short', 0, { expiresIn: 1000 });
    await db.set('long', 0);
    const shown = async (key: string) => [key, (await db.getEntry(key))?.value, (await db.getEntry(key))?.expiresAt];
    for (const [key, expected] of [
      ['short', new Date(T0 + 1000)],
      ['long', undefined],
    ] as const) {
      const expiresAt = (await db.getEntry(key))?.expiresAt;
      await db.set(key, 1, { expiresAt });
      expect(await shown(key)).toStrictEqual([key, 1, expected]);
      await db.batch().set(key, 2, { expiresAt }).commit();
      expect(await shown(key)).toStrictEqual([key, 2, expected]);
      const tx = await db.begin();
      tx.set(key, 3, { expiresAt });
      await tx.commit();
      expect(await shown(key)).toStrictEqual([key, 3, expected]);
    }
  });

  test('that a transaction has given itself is kept by its own update', async () => {
    setTime(T0);
    const db = await openAsync();
    await db.transaction(async (tx) => {
      tx.set('in', 1, { expiresIn: 1000 });
      tx.set('at', 1, { expiresAt: new Date(T0 + 2000) });
      tx.set('gone', 1, { expiresIn: 1000 });
      tx.delete('gone');
      for (const key of ['in', 'at', 'gone']) await tx.update(key, add);
    });
    const expiries = await times(3, async (i) => (await db.getEntry(['in', 'at', 'gone'][i] as string))?.expiresAt);
    expect(expiries).toStrictEqual([new Date(T0 + 1000), new Date(T0 + 2000), undefined]);
  });

  test('is that of the call, also if its options or its Date change later', async () => {
    setTime(T0);
    const db = await openAsync();
    const now = await openSync();
    const lifetimes = (): [{ expiresIn: number }, { expiresAt: Date }] => [
      { expiresIn: 1000 },
      { expiresAt: new Date(T0 + 1000) },
    ];
    const write = (tx: { set(key: Key, value: unknown, lifetime: object): void }): void => {
      const [relative, absolute] = lifetimes();
      tx.set('in', 1, relative);
      tx.set('at', 1, absolute);
      relative.expiresIn = 3_600_000;
      absolute.expiresAt.setTime(T0 + 3_600_000);
    };
    await db.transaction(async (tx) => {
      write(tx);
      for (const key of ['in', 'at']) await tx.update(key, add);
    });
    now.transaction((tx) => {
      write(tx);
      for (const key of ['in', 'at']) tx.update(key, add);
    });
    for (const key of ['in', 'at']) {
      expect((await db.getEntry(key))?.expiresAt).toStrictEqual(new Date(T0 + 1000));
      expect(now.getEntry(key)?.expiresAt).toStrictEqual(new Date(T0 + 1000));
    }
  });

  test.each<[string, () => UpdateLifetime, (options: UpdateLifetime) => unknown]>([
    ['expiresIn', () => ({ expiresIn: 1000 }), (options) => Object.assign(options, { expiresIn: 3_600_000 })],
    [
      'the Date in expiresAt',
      () => ({ expiresAt: new Date(T0 + 1000) }),
      ({ expiresAt }) => (expiresAt as Date).setTime(T0 + 3_600_000),
    ],
  ])('of an update is that of the call, also if %s changes before the update writes', async (_, given, change) => {
    setTime(T0);
    const db = await openAsync();
    const now = await openSync();
    const changing = (update: (options: UpdateLifetime) => Promise<unknown>): Promise<unknown> => {
      const options = given();
      const updated = update(options);
      change(options);
      return updated;
    };
    await changing((options) => db.update('store', add, options));
    await db.transaction((tx) => changing((options) => tx.update('tx', add, options)));
    const changed = (update: (run: () => number, options: UpdateLifetime) => unknown): void => {
      const options = given();
      update(() => {
        change(options);
        return 1;
      }, options);
    };
    changed((run, options) => now.update('store', run, options));
    now.transaction((tx) => changed((run, options) => tx.update('tx', run, options)));
    for (const key of ['store', 'tx']) {
      const expiries = [(await db.getEntry(key))?.expiresAt, now.getEntry(key)?.expiresAt];
      expect(expiries, key).toStrictEqual([new Date(T0 + 1000), new Date(T0 + 1000)]);
    }
  });

  test.each([
    [{ expiresIn: 1, expiresAt: T0 }],
    [{ expiresAt: Number.NaN }],
    [{ expiresAt: 0 }],
    [{ expiresAt: new Date(Number.NaN) }],
    [{ expiresAt: '2030-01-01' as unknown as Date }],
  ])('%o is refused', async (options) => {
    const db = await openAsync();
    await expect(db.set('k', 1, options)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    await expect(db.update('k', add, options)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(await db.has('k')).toBe(false);
  });

  test('of the last Date there is can be updated', async () => {
    const db = await openAsync();
    await db.set('k', 0, { expiresAt: 8.64e15 });
    await db.update('k', add);
    expect((await db.getEntry('k'))?.expiresAt).toStrictEqual(new Date(8.64e15));
  });
});

describe('updates of one client', () => {
  test('of one key are all made, in their order, each once', async () => {
    const db = await openAsync();
    let calls = 0;
    await times(1000, (i) =>
      db.update('list', (value) => {
        calls++;
        return [...((value as number[] | undefined) ?? []), i];
      }),
    );
    expect(calls).toBe(1000);
    expect(await db.get('list')).toStrictEqual(Array.from({ length: 1000 }, (_, i) => i));
  });

  test('are made in their order also when their functions wait', async () => {
    const db = await openAsync();
    let calls = 0;
    await times(100, (i) =>
      db.update('list', async (value) => {
        calls++;
        await tick();
        return [...((value as number[] | undefined) ?? []), i];
      }),
    );
    expect(calls).toBe(100);
    expect(await db.get('list')).toStrictEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  test('continue when one of them fails or is aborted, before its turn or in it', async () => {
    const db = await openAsync();
    const control = new AbortController();
    let isReached = (): void => undefined;
    const reached = new Promise<void>((resolve) => {
      isReached = resolve;
    });
    const updates = [
      db.update('n', add),
      db.update('n', () => {
        throw new Error('no');
      }),
      db.update('n', add),
      db.update('n', () => Symbol('no value')),
      db.update(
        'n',
        () => {
          isReached();
          return new Promise(() => undefined);
        },
        { signal: control.signal },
      ),
      db.update('n', add, { signal: control.signal }),
      db.update('n', add),
    ];
    const outcomes = Promise.allSettled(updates);
    await reached;
    control.abort();
    expect((await outcomes).map(({ status }) => status === 'fulfilled')).toStrictEqual([
      true,
      false,
      true,
      false,
      false,
      false,
      true,
    ]);
    await expect(updates[5]).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    expect(await db.get('n')).toBe(3);
  });

  test('that are aborted while they wait do not change the order of the others', async () => {
    const db = await openAsync();
    const control = new AbortController();
    let finish = (_: string): void => undefined;
    const slow = (): Promise<string> =>
      new Promise((resolve) => {
        finish = resolve;
      });
    let calls = 0;
    const updates = [
      db.update('k', slow),
      db.update('k', add, { signal: control.signal }),
      db.update('k', (value) => {
        calls++;
        return `${String(value)}!`;
      }),
    ];
    await db.set('other', 1);
    control.abort();
    await expect(updates[1]).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    await db.set('other', 2);
    expect(calls).toBe(0);
    finish('slow');
    await updates[2];
    expect([calls, await db.get('k')]).toStrictEqual([1, 'slow!']);
  });

  test('of different keys do not wait for each other', async () => {
    const db = await openAsync();
    let finish = (_: number): void => undefined;
    const slow = db.update(
      'slow',
      () =>
        new Promise<number>((resolve) => {
          finish = resolve;
        }),
    );
    await times(10, (i) => db.update(['quick', i], add));
    finish(7);
    await slow;
    expect(await db.get('slow')).toBe(7);
  });

  test('are of the key as it was at the call, inside a transaction, too', async () => {
    const db = await openAsync();
    const key = [1];
    const updated = db.update(key, add);
    key[0] = 2;
    await updated;
    await db.transaction((tx) => {
      key[0] = 1;
      const updated = tx.update(key, add);
      key[0] = 2;
      return updated;
    });
    expect([await db.get([1]), await db.has([2])]).toStrictEqual([2, false]);
  });

  test('are refused when the store is closed, also those that wait for their turn', async () => {
    const db = await openAsync();
    await db.update('n', add);
    const updates = Promise.allSettled(Array.from({ length: 5 }, () => db.update('n', add)));
    await db.close();
    const last = (await updates).at(-1) as PromiseRejectedResult;
    expect(last.reason).toMatchObject({ code: 'VARVE_CLOSED' });
  });
});

describe('an update in the function of an update of the same key', () => {
  test('is refused', async () => {
    const db = await openAsync();
    for (const nested of [async () => add(await db.update('n', add)), () => db.update('n', add)]) {
      await expect(db.update('n', nested)).rejects.toThrow('may not update the same key');
    }
    await db.update('other', () => db.update('n', add));
    expect(await db.get('n')).toBe(1);
  });

  test('that is called later goes ahead after a while, and the one around it ends', { timeout: 30_000 }, async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const db = await openAsync();
    let calls = 0;
    const outer = db.update('n', async () => {
      calls++;
      await tick();
      await db.update('n', add);
      return 'outer';
    });
    const outcome = expect(outer).rejects.toThrow('do not update the key in it');
    for (let i = 0; i < 100; i++) {
      await vi.advanceTimersByTimeAsync(1000);
      await tick();
    }
    await outcome;
    expect([calls, await db.get('n')]).toStrictEqual([3, 3]);
  });

  test('of one that takes long waits for no more than a while', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const db = await openAsync();
    const slow = async (n: unknown): Promise<number> => {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return add(n);
    };
    const both = Promise.all([db.update('n', slow), db.update('n', add)]);
    for (let i = 0; i < 20; i++) {
      await vi.advanceTimersByTimeAsync(500);
      await tick();
    }
    await both;
    expect(await db.get('n')).toBe(2);
  });

  test('of a transaction is refused, and several at once lose nothing', async () => {
    const db = await openAsync();
    await db.set('n', 1);
    await db.transaction(async (tx) => {
      await times(100, () => tx.update('n', add));
      await times(100, () =>
        tx.update('n', async (n) => {
          await tick();
          return add(n);
        }),
      );
      await expect(tx.update('n', async () => tx.update('n', add))).rejects.toThrow('may not update the same key');
    });
    expect(await db.get('n')).toBe(201);
  });
});

describe('an update whose key others write', () => {
  test('gives up after 100 conflicts, with the key', async () => {
    withoutWaiting();
    const db = await openAsync();
    let calls = 0;
    const meddle = async (): Promise<number> => {
      await db.set('k', -1);
      return ++calls;
    };
    await expect(db.update('k', meddle)).rejects.toThrow(conflict('k', 100));
    expect(calls).toBe(100);
    expect(await db.get('k')).toBe(-1);
  });

  test('passes on a conflict of its function', async () => {
    const db = await openAsync();
    let calls = 0;
    const failing = async (): Promise<never> => {
      calls++;
      await db.set('other', 1);
      await db.set('other', 2, { ifSequence: null });
      throw new Error('not reached');
    };
    await expect(db.update('k', failing)).rejects.toThrow(conflict('other', 1));
    expect(calls).toBe(1);
  });

  test.each(['VARVE_CONFLICT', 'VARVE_RETRY'] as const)('is not made again for a %s of its function', async (name) => {
    const db = await openAsync();
    let calls = 0;
    const failing = (): never => {
      calls++;
      throw new VarveError(name, 'its own');
    };
    await expect(db.update('k', failing)).rejects.toThrow('its own');
    expect(calls).toBe(1);
  });

  test('is made again in a synchronous transaction whose function wrote the key', async () => {
    const db = await openSync();
    let calls = 0;
    db.transaction((tx) => {
      tx.update('n', (n) => {
        if (calls++ === 0) tx.update('n', add);
        return add(n);
      });
    });
    expect([db.get('n'), calls]).toStrictEqual([2, 2]);
    const writing = (): void =>
      db.transaction((tx) => {
        tx.update('n', (n) => {
          calls++;
          tx.update('n', add);
          return n;
        });
      });
    expect(writing).toThrow(code('VARVE_CONFLICT'));
    expect([db.get('n'), calls]).toStrictEqual([2, 18]);
  });

  test('is made again in a transaction that wrote the key meanwhile', async () => {
    withoutWaiting();
    const db = await openAsync();
    let calls = 0;
    await db.transaction((tx) =>
      tx.update('n', async (n) => {
        await tick();
        if (++calls === 1) tx.set('n', 10);
        return add(n);
      }),
    );
    expect([calls, await db.get('n')]).toStrictEqual([2, 11]);
    const always = db.transaction((tx) =>
      tx.update('n', (n) => {
        tx.delete('n');
        tx.set('n', n);
        return add(n);
      }),
    );
    await expect(always).rejects.toThrow(code('VARVE_CONFLICT'));
    expect(await db.get('n')).toBe(11);
  });

  test('stops at its signal', async () => {
    const db = await openAsync();
    const control = new AbortController();
    let calls = 0;
    const meddle = async (): Promise<number> => {
      await db.set('k', -1);
      if (++calls === 5) control.abort();
      return 0;
    };
    await expect(db.update('k', meddle, { signal: control.signal })).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
    expect(calls).toBe(5);
  });
});

describe('ten clients', () => {
  test('count together, each update once', { timeout: 60_000 }, async () => {
    const tabs = await openTabs(10);
    await Promise.all(tabs.map((db) => times(50, () => db.update('n', add))));
    expect(await tabs[0]?.get('n')).toBe(500);
  });

  test('count together in transactions', { timeout: 60_000 }, async () => {
    const tabs = await openTabs(10);
    const increment = (db: Store<Key, unknown>): Promise<void> =>
      db.transaction(async (tx) => tx.set('n', add(await tx.get('n'))));
    await Promise.all(tabs.map((db) => times(20, () => increment(db))));
    expect(await tabs[0]?.get('n')).toBe(200);
  });
});

describe('transactions of one client', () => {
  test('over one note are all made, with two attempts each', async () => {
    const db = await openAsync();
    let calls = 0;
    await times(100, () =>
      db.transaction(async (tx) => {
        calls++;
        tx.set('n', add(await tx.get('n')));
      }),
    );
    expect(await db.get('n')).toBe(100);
    expect(calls).toBeLessThan(250);
  });

  test('over several notes in any order are all made', async () => {
    const db = await openAsync();
    const keys = ['a', 'b', 'c'];
    await times(60, (i) =>
      db.transaction(async (tx) => {
        const [first, second] = [keys[i % 3] as string, keys[(i + 1 + (i % 2)) % 3] as string];
        tx.set(first, add(await tx.get(first)));
        tx.set(second, add(await tx.get(second)));
      }),
    );
    const counts = (await db.getMany(keys)) as number[];
    expect(counts.reduce((sum, n) => sum + n)).toBe(120);
  });

  test('inside one another, over one key, end', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const db = await openAsync();
    const increment = (): Promise<void> => db.transaction(async (tx) => tx.set('n', add(await tx.get('n'))));
    let calls = 0;
    const outer = db.transaction(async (tx) => {
      const m = await tx.get('m');
      // It conflicts, waits for its turn, and waits inside the function for another that conflicts.
      if (++calls === 1) await db.set('m', 5);
      await times(3, increment);
      tx.set('m', add(m));
    });
    let isOver = false;
    void outer.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await vi.advanceTimersByTimeAsync(100);
      await tick();
    }
    await outer;
    expect(await db.getMany(['m', 'n'])).toStrictEqual([6, 6]);
  });
});
