/** Snapshots and counts, of both stores over the real engine. */

import { describe, expect, test, vi } from 'vitest';
import { codeNumber } from '../../js/src/errors.ts';
import { Op } from '../../js/src/protocol/frame.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import type { Key } from '../../js/src/types.ts';
import { openFake } from './support/open-fake.ts';
import { collect, openAsync, openSync } from './support/stores.ts';

const closed = expect.objectContaining({ code: 'VARVE_CLOSED' });
const numbered = (count: number): [Key, unknown][] => Array.from({ length: count }, (_, i) => [i, `value ${i}`]);

describe.each([
  ['asynchronous', openAsync],
  ['synchronous', openSync],
] as const)('a snapshot of the %s store', (_, openEither) => {
  test('sees the entries at its call, and none of the later ones', async () => {
    const db = await openEither();
    await db.setMany([
      ['a', 1],
      ['b', 2],
    ]);
    const before = db.set('d', 4);
    const snapshot = db.snapshot();
    const first = snapshot.get('a');
    const scanned = collect(snapshot.keys());
    const later = [db.set('a', 10), db.delete('b'), db.set('c', 3), db.delete('d')];
    expect(await snapshot.get('a')).toBe(1);
    await Promise.all([before, ...later]);
    expect([await snapshot.sequence, await first, await scanned]).toStrictEqual([3, 1, ['a', 'b', 'd']]);
    expect(await snapshot.get('d')).toBe(4);
    expect(await snapshot.getMany(['a', 'b', 'c'])).toStrictEqual([1, 2, undefined]);
    expect(await snapshot.getEntry('b')).toStrictEqual({ value: 2, sequence: 2, expiresAt: undefined });
    expect(await snapshot.getEntry('c')).toBe(undefined);
    expect(await snapshot.hasMany(['b', 'c'])).toStrictEqual([true, false]);
    expect(await collect(snapshot)).toStrictEqual([
      ['a', 1],
      ['b', 2],
      ['d', 4],
    ]);
    expect(await collect(snapshot.keys({ reverse: true }))).toStrictEqual(['d', 'b', 'a']);
    expect(await collect(snapshot.values({ gt: 'a' }))).toStrictEqual([2, 4]);
    expect([await snapshot.count(), await db.count()]).toStrictEqual([3, 2]);
    expect(await collect(db.keys())).toStrictEqual(['a', 'c']);
  });

  test('survives flushes and merges of newer entries', async () => {
    const db = await openEither();
    const before = numbered(3000);
    await db.setMany(before);
    const snapshot = db.snapshot();
    for (let round = 0; round < 4; round++) {
      for (let at = 0; at < before.length; at += 500) {
        const part = before.slice(at, at + 500);
        await db.setMany(part.map(([key]): [Key, unknown] => [key, `round ${round} ${'x'.repeat(100)}`]));
        await nextTurn();
      }
    }
    await db.deleteRange({ gte: 1000 });
    await db.compact();
    expect(await db.count()).toBe(1000);
    expect(await snapshot.count()).toBe(3000);
    expect(await collect(snapshot)).toStrictEqual(before);
    expect(await snapshot.get(2999)).toBe('value 2999');
  });

  test('is in stats until it is closed, and closed for good', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 2_000_000_000_000 });
    const db = await openEither();
    await db.set('a', 1);
    const first = db.snapshot();
    await first.sequence;
    vi.setSystemTime(2_000_000_000_500);
    const second = db.snapshot();
    await second.sequence;
    expect(await db.stats()).toMatchObject({ snapshots: 2, snapshotAge: 500 });
    await first.close();
    await first.close();
    expect(await db.stats()).toMatchObject({ snapshots: 1, snapshotAge: 0 });
    await expect((async () => first.get('a'))()).rejects.toThrow(closed);
    expect(() => first.keys()).toThrow(closed);
    await expect((async () => first.count())()).rejects.toThrow(closed);
    const third = db.snapshot();
    expect(await third.get('a'), 'whose number the closed one had').toBe(1);
    await expect((async () => first.has('a'))()).rejects.toThrow(closed);
    await second.close();
    await third.close();
    expect(await db.stats()).toMatchObject({ snapshots: 0, snapshotAge: undefined });
  });

  test('fixes the time as well: entries that expire later are still there', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 2_000_000_000_000 });
    const db = await openEither();
    await db.set('a', 1, { expiresIn: 100 });
    const snapshot = db.snapshot();
    await snapshot.sequence;
    vi.setSystemTime(2_000_000_001_000);
    await Promise.resolve();
    expect([await db.get('a'), await db.count()]).toStrictEqual([undefined, 0]);
    expect([await snapshot.get('a'), await snapshot.count()]).toStrictEqual([1, 1]);
  });

  test('that outlives its store is refused as closed', async () => {
    const db = await openEither();
    const snapshot = db.snapshot();
    await db.close();
    await expect((async () => snapshot.get('a'))()).rejects.toThrow(closed);
    await snapshot.close();
  });
});

test('a snapshot that is closed before it was taken is none', async () => {
  const db = await openAsync();
  await db.set('a', 1);
  const snapshot = db.snapshot();
  const read = snapshot.get('a');
  const closing = snapshot.close();
  await expect(snapshot.get('a')).rejects.toThrow(closed);
  expect([await read, await snapshot.sequence]).toStrictEqual([1, 1]);
  await closing;
  expect((await db.stats()).snapshots).toBe(0);
});

test('a snapshot that cannot be taken fails its reads, and nobody reads its number afterwards', async () => {
  const { db, engine } = await openFake<string, number>();
  const [full, missing] = [codeNumber('VARVE_STORAGE_FULL'), codeNumber('VARVE_INVALID_ARGUMENT')];
  engine.fault = ({ op }) => {
    if (op === Op.snapshotOpen) return { code: full, message: 'no room' };
    return op === Op.sync ? undefined : { code: missing, message: 'There is no such snapshot.' };
  };
  const refused = expect.objectContaining({ code: 'VARVE_STORAGE_FULL' });
  const snapshot = db.snapshot();
  const signal = AbortSignal.abort(new Error('enough'));
  await expect(snapshot.get('a', { signal })).rejects.toThrow('enough');
  const reads = [snapshot.get('a'), collect(snapshot.keys()), snapshot.count(), snapshot.sequence];
  for (const { status, reason } of (await Promise.allSettled(reads)) as PromiseRejectedResult[])
    expect([status, reason]).toStrictEqual(['rejected', refused]);
  const sent = engine.ops.length;
  await expect(snapshot.has('a')).rejects.toThrow(refused);
  expect(() => snapshot.keys()).toThrow(refused);
  await snapshot.close();
  await db.flush();
  const ends: number[] = [Op.snapshotClose, Op.scanClose, Op.sync];
  expect(engine.ops.slice(sent).filter(({ op }) => !ends.includes(op))).toStrictEqual([]);
  expect(engine.ops.filter(({ op }) => op === Op.snapshotClose)).toHaveLength(1);
  await db.close();
  await expect(db.snapshot().get('a')).rejects.toThrow(closed);
});

test('using closes a snapshot at the end of its block', async () => {
  const db = await openAsync();
  const sync = await openSync();
  {
    await using snapshot = db.snapshot();
    using other = sync.snapshot();
    expect([await snapshot.count(), other.count()]).toStrictEqual([0, 0]);
  }
  expect((await db.stats()).snapshots + sync.stats().snapshots).toBe(0);
});

describe('count', () => {
  test.each([openAsync, openSync])('counts the keys of any range, in more than one slice', async (openEither) => {
    const db = await openEither();
    for (let at = 0; at < 25_000; at += 5000) {
      await db.setMany(numbered(at + 5000).slice(at));
      await nextTurn();
    }
    await db.set('text', 1);
    await db.delete(7);
    expect(await db.count()).toBe(25_000);
    expect(await db.count({ gte: 0, lt: 10 })).toBe(9);
    expect(await db.count({ gt: 24_998 })).toBe(1);
    expect(await db.count({ prefix: 'te' })).toBe(1);
    expect(await db.count({ gt: 5, lt: 5 })).toBe(0);
    expect((await db.stats()).scans).toBe(0);
  });

  test('has the read point of its call', async () => {
    const db = await openAsync();
    await db.set('a', 1);
    const counted = db.count();
    await db.clear();
    expect(await counted).toBe(1);
  });

  test('can be aborted', async () => {
    const db = await openAsync();
    const signal = AbortSignal.abort();
    await expect(db.count({ signal })).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  });
});
