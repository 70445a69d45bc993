/** Transactions of one page against each other, and against other writes, over the real engine. */

import { describe, expect, test, vi } from 'vitest';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer } from './support/engine.ts';
import { add, collect, conflict, openAsync } from './support/stores.ts';

describe('concurrent transactions', () => {
  test('lose no update', async () => {
    const db = await openAsync();
    await Promise.all(
      Array.from({ length: 20 }, () =>
        db.transaction(async (tx) => tx.set('n', add(await tx.get('n'))), { retries: 50 }),
      ),
    );
    expect(await db.get('n')).toBe(20);
  });

  test('take one round trip for their first reads, and one for their writes', async () => {
    let frames = 0;
    const db = await openAsync(() => {
      const port = spawnServer();
      const post = port.postMessage.bind(port);
      port.postMessage = (message, transfer) => {
        if (message instanceof ArrayBuffer) frames++;
        post(message, transfer);
      };
      return port;
    });
    const both = ['a', 'b'];
    const swap = () =>
      db.transaction(async (tx) => {
        const [a, b] = await tx.getMany(both);
        tx.set('a', b ?? 1);
        tx.set('b', a ?? 2);
      });
    // The first transaction loads the module of transactions.
    await swap();
    const before = frames;
    await swap();
    expect(frames - before).toBe(2);
    expect(await db.getMany(both)).toEqual([2, 1]);
  });

  test('may wait for anything in the middle', async () => {
    const db = await openAsync();
    await db.set('n', 1);
    let attempts = 0;
    let hasRead = (): void => undefined;
    const read = new Promise<void>((resolve) => {
      hasRead = resolve;
    });
    let hasWritten = (): void => undefined;
    const written = new Promise<void>((resolve) => {
      hasWritten = resolve;
    });
    const running = db.transaction(async (tx) => {
      attempts++;
      const n = await tx.get('n');
      hasRead();
      await written;
      tx.set('n', add(n));
    });
    await read;
    await db.set('n', 10);
    hasWritten();
    await running;
    expect(attempts).toBeGreaterThan(1);
    expect(await db.get('n')).toBe(11);
  });

  test('see no phantoms', async () => {
    const db = await openAsync();
    // Each transaction takes the next number of a range that it has read as a whole.
    const join = (): Promise<number> =>
      db.transaction(
        async (tx) => {
          const count = await tx.count({ prefix: ['member'] });
          tx.set(['member', count], true);
          return count;
        },
        { retries: 50 },
      );
    const numbers = await Promise.all(Array.from({ length: 8 }, join));
    expect(numbers.sort((a, b) => a - b)).toStrictEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await db.count()).toBe(8);
  });

  test('cannot skew writes', async () => {
    const db = await openAsync();
    await db.setMany([
      ['a', 1],
      ['b', 1],
    ]);
    // One of the two must stay.
    const leave = (key: string): Promise<void> =>
      db.transaction(async (tx) => {
        const [a, b] = await tx.getMany(['a', 'b']);
        if ((a as number) + (b as number) > 1) tx.set(key, 0);
      });
    await Promise.all([leave('a'), leave('b')]);
    const [a, b] = await db.getMany(['a', 'b']);
    expect((a as number) + (b as number)).toBe(1);
  });

  test.each([
    ['a key that was deleted', (db: Store<Key, unknown>) => db.delete('b'), 'b'],
    ['a range that was deleted', (db: Store<Key, unknown>) => db.deleteRange({ gte: 'a', lt: 'c' }), 'a'],
    ['everything deleted', (db: Store<Key, unknown>) => db.clear(), undefined],
    ['the same value, written again', (db: Store<Key, unknown>) => db.set('b', 1), 'b'],
  ])('conflict with %s', async (_, write, key) => {
    const db = await openAsync();
    await db.set('b', 1);
    const failed = db.transaction(
      async (tx) => {
        await collect(tx.entries());
        await write(db);
        tx.set('x', 1);
      },
      { retries: 0 },
    );
    await expect(failed).rejects.toThrow(expect.objectContaining({ code: 'VARVE_CONFLICT' }));
    const { conflict: found } = (await failed.catch((error) => error)) as { conflict: { key: unknown } };
    expect(found.key).toBe(key);
    expect(await db.has('x')).toBe(false);
  });

  test('do not conflict over keys that they did not read', async () => {
    const db = await openAsync();
    await db.setMany([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
      [4, 'd'],
    ]);
    await db.transaction(
      async (tx) => {
        // Only as far as the loop went, in either direction.
        for await (const key of tx.keys({ limit: 2 })) expect([1, 2]).toContain(key);
        for await (const _ of tx.keys({ lt: 5, reverse: true })) break;
        // It knows its own writes and deletes without a request.
        tx.set(7, 'own');
        tx.deleteRange({ gte: 5, lt: 7 });
        expect([await tx.get(7), await tx.has(6), await tx.count({ gte: 5, lt: 7 })]).toStrictEqual(['own', false, 0]);
        expect(await collect(tx.keys({ gte: 5, lt: 7 }))).toStrictEqual([]);
        await db.setMany([
          [3, 'c2'],
          [6, 'f'],
          [7, 'g'],
        ]);
        tx.set('done', true);
      },
      { retries: 0 },
    );
    expect(await db.get('done')).toBe(true);
    expect(await collect(db.keys())).toStrictEqual(['done', 1, 2, 3, 4, 7]);
  });

  test('that only read never conflict, and write nothing', async () => {
    const db = await openAsync();
    const { sequence } = await db.set('k', 1);
    const read = await db.transaction(
      async (tx) => {
        const before = await tx.get('k');
        await db.set('k', 2);
        return [before, await tx.get('k')];
      },
      { retries: 0 },
    );
    expect(read).toStrictEqual([1, 1]);
    expect((await db.stats()).sequence).toBe(sequence + 1);
  });

  test('survive merges that drop deleted entries', async () => {
    const db = await openAsync();
    await db.setMany(Array.from({ length: 2000 }, (_, i) => [i, 'x'.repeat(100)]));
    await db.compact();
    const failed = db.transaction(
      async (tx) => {
        await tx.get(5);
        await db.delete(5);
        await db.compact();
        tx.set('mine', 1);
      },
      { retries: 0 },
    );
    await expect(failed).rejects.toThrow(conflict(5, null));
  });

  test('stop at their signal', async () => {
    const db = await openAsync();
    const control = new AbortController();
    const reason = new Error('enough');
    const never = db.transaction(
      async (tx) => {
        tx.set('k', 1);
        control.abort(reason);
        await new Promise(() => undefined);
      },
      { signal: control.signal },
    );
    await expect(never).rejects.toBe(reason);
    await expect(db.transaction(() => 1, { signal: control.signal })).rejects.toBe(reason);
    expect([await db.has('k'), (await db.stats()).snapshots]).toStrictEqual([false, 0]);
  });

  test('stand still in time', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 2_000_000_000_000 });
    const db = await openAsync();
    await db.set('short', 1, { expiresIn: 100 });
    await db.transaction(
      async (tx) => {
        expect(await tx.get('short')).toBe(1);
        vi.setSystemTime(2_000_000_001_000);
        expect(await db.get('short')).toBe(undefined);
        expect(await tx.get('short')).toBe(1);
        tx.set('seen', true);
      },
      { retries: 0 },
    );
    expect(await db.get('seen')).toBe(true);
  });
});
