/** Iterators: order, batches, how much they move, when their view is fixed, and how they end. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { Store } from '../../js/src/store/store.ts';
import type { ScanOptions } from '../../js/src/types.ts';
import type { FakeEngine, SentOp } from './support/fake-engine.ts';
import { openFake } from './support/open-fake.ts';

const code = (expected: string): unknown => expect.objectContaining({ code: expected });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** A store of `count` entries k0000.. with values of `size` bytes. */
async function filled(
  count: number,
  size = 10,
): Promise<{ db: Store<string, Uint8Array>; engine: FakeEngine; keys: string[] }> {
  const { db, engine } = await openFake<string, Uint8Array>();
  const keys = Array.from({ length: count }, (_, i) => `k${String(i).padStart(4, '0')}`);
  await db.setMany(keys.map((key, i) => [key, new Uint8Array(size).fill(i)]));
  engine.frames.length = 0;
  engine.answerBytes.length = 0;
  return { db, engine, keys };
}

const named = (ops: readonly SentOp[], op: number): SentOp[] => ops.filter((sent) => sent.op === op);
const [OPEN, NEXT, CLOSE] = [7, 8, 9] as const;
const batchBytes = (engine: FakeEngine): number[] =>
  engine.ops
    .filter(({ op }) => op === OPEN || op === NEXT)
    .map(({ op, value }) => new DataView(value.buffer, value.byteOffset).getUint32(op === OPEN ? 8 : 0, true));

describe('iterators return', () => {
  test('entries, keys and values in order, and the store itself', async () => {
    const { db, keys } = await filled(5);
    const value = (i: number): Uint8Array => new Uint8Array(10).fill(i);
    expect(await collect(db.keys())).toEqual(keys);
    expect(await collect(db.values())).toEqual(keys.map((_, i) => value(i)));
    expect(await collect(db.entries())).toEqual(keys.map((key, i) => [key, value(i)]));
    expect(await collect(db)).toEqual(await collect(db.entries()));
  });

  test.each<[ScanOptions<string>, number[]]>([
    [{ reverse: true }, [5, 4, 3, 2, 1, 0]],
    [{ limit: 2 }, [0, 1]],
    [{ limit: 2, reverse: true }, [5, 4]],
    [{ limit: 0 }, []],
    [{ gt: 'k0001', lte: 'k0003' }, [2, 3]],
    [{ gte: 'k0001', lt: 'k0003', reverse: true }, [2, 1]],
    [{ prefix: 'k', limit: 1 }, [0]],
    [{ prefix: 'x' }, []],
    [{ gt: 'z', lt: 'a' }, []],
  ])('%j', async (options, expected) => {
    const { db, keys } = await filled(6);
    expect(await collect(db.keys(options))).toEqual(expected.map((i) => keys[i]));
    expect((await collect(db.entries(options))).map(([key]) => key)).toEqual(expected.map((i) => keys[i]));
  });

  test('an empty store', async () => {
    const { db, engine } = await openFake();
    expect(await collect(db)).toEqual([]);
    expect(engine.ops.map(({ op }) => op)).toEqual([OPEN]);
  });

  test('many batches, whole and in order', async () => {
    const { db, engine, keys } = await filled(2000, 300);
    expect(await collect(db.keys({ reverse: true }))).toEqual([...keys].reverse());
    const entries = await collect(db.entries());
    expect(entries.map(([key]) => key)).toEqual(keys);
    expect(entries.every(([, value], i) => value.length === 300 && value[0] === i % 256)).toBe(true);
    expect(engine.openScans.size).toBe(0);
    expect(named(engine.ops, CLOSE)).toEqual([]);
  });
});

describe('frames carry', () => {
  test('keys move no values, values move no keys', async () => {
    const { db, engine } = await filled(50, 100);
    await collect(db.keys());
    await collect(db.values());
    const [keys, values] = engine.answerBytes as [number, number];
    expect(keys).toBeLessThan(50 * 10 + 100);
    expect(values).toBeLessThan(50 * 105 + 100);
  });

  test('batches begin small and grow', async () => {
    const { db, engine } = await filled(2000, 500);
    await collect(db.entries());
    expect(batchBytes(engine).slice(0, 6)).toEqual([16, 32, 64, 128, 256, 256].map((kib) => kib * 1024));
  });

  test('a limit sizes the first batch', async () => {
    const { db, engine } = await filled(600, 100);
    expect((await collect(db.entries({ limit: 500 }))).length).toBe(500);
    await collect(db.entries({ limit: 5 }));
    await collect(db.entries({ limit: 10 ** 9 }));
    expect(named(engine.ops, NEXT)).toEqual([]);
    expect(batchBytes(engine)).toEqual([64_000, 16 * 1024, 256 * 1024]);
  });

  test('from the second batch on the next one is asked for while the last one is consumed, one ahead at most', async () => {
    const { db, engine } = await filled(2000, 100);
    const entries = db.entries();
    const asked: number[] = [];
    for (let i = 0; i < 200; i++) {
      await entries.next();
      await turn();
      await turn();
      asked.push(named(engine.ops, NEXT).length);
    }
    // A scan that is left in its first batch has read nothing else. The second batch is long enough for the rest.
    const second = asked.findIndex((count) => count > 0);
    expect(second).toBeGreaterThan(100);
    expect(asked.slice(second)).toEqual(Array(200 - second).fill(2));
    await entries.return?.();
  });

  test('nothing more than the first batch is asked for before the first step', async () => {
    const { db, engine } = await filled(2000, 100);
    const entries = db.entries();
    await turn();
    await turn();
    expect(engine.ops.map(({ op }) => op)).toEqual([OPEN]);
    await entries.return?.();
  });
});

describe('the read point of an iterator', () => {
  test('is its call, between the writes before and after it', async () => {
    const { db } = await openFake<string, number>();
    db.set('a', 1);
    const entries = db.entries();
    db.set('b', 2);
    await db.set('a', 3);
    expect(await collect(entries)).toEqual([['a', 1]]);
    expect(await collect(db.entries())).toEqual([
      ['a', 3],
      ['b', 2],
    ]);
  });
});

describe('the end of an iterator', () => {
  test('leaving the loop closes the scan in the engine', async () => {
    const { db, engine } = await filled(2000, 100);
    for await (const [key] of db) if (key === 'k0003') break;
    while (engine.openScans.size > 0) await turn();
    expect(named(engine.ops, CLOSE).length).toBe(1);
  });

  test('return() before the first step closes the scan', async () => {
    const { db, engine } = await filled(2000, 100);
    const entries = db.entries();
    expect(await entries.return?.()).toEqual({ done: true, value: undefined });
    expect(await entries.next()).toEqual({ done: true, value: undefined });
    while (named(engine.ops, CLOSE).length === 0) await turn();
    expect(engine.openScans.size).toBe(0);
  });

  test('return() while a step waits ends that step too', async () => {
    const { db, engine } = await filled(2000, 100);
    const entries = db.entries();
    const step = entries.next();
    await entries.return?.();
    expect(await step).toEqual({ done: true, value: undefined });
    while (engine.openScans.size > 0) await turn();
  });

  test('throw() closes the scan and rejects', async () => {
    const { db, engine } = await filled(2000, 100);
    const entries = db.entries();
    await entries.next();
    await expect(entries.throw?.(new RangeError('stop'))).rejects.toThrow('stop');
    expect((await entries.next()).done).toBe(true);
    while (engine.openScans.size > 0) await turn();
  });

  test('await using closes the scan', async () => {
    const { db, engine } = await filled(2000, 100);
    {
      await using entries = db.entries();
      await entries.next();
    }
    while (engine.openScans.size > 0) await turn();
    expect(named(engine.ops, CLOSE).length).toBe(1);
  });

  test('an iterator without references is closed when it is collected', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const { db, engine } = await filled(2000, 100);
    (() => {
      db.entries();
    })();
    while (engine.openScans.size === 0) await turn();
    while (engine.openScans.size > 0) {
      collectGarbage();
      await turn();
    }
    expect(named(engine.ops, CLOSE).length).toBe(1);
  });

  test('after the end, next() stays at the end', async () => {
    const { db } = await filled(1);
    const keys = db.keys();
    expect((await keys.next()).value).toBe('k0000');
    for (let i = 0; i < 3; i++) expect(await keys.next()).toEqual({ done: true, value: undefined });
  });

  test('steps called at once come in order, each once', async () => {
    const { db, keys } = await filled(300, 200);
    const iterator = db.keys();
    const steps = await Promise.all(Array.from({ length: 303 }, () => iterator.next()));
    expect(steps.slice(0, 300).map(({ value }) => value)).toEqual(keys);
    expect(steps.slice(300).every(({ done }) => done === true)).toBe(true);
  });
});

describe('abort', () => {
  test('while a step waits rejects it with the reason, and closes the scan', async () => {
    const { db, engine } = await filled(2000, 100);
    const controller = new AbortController();
    engine.hold();
    const entries = db.entries({ signal: controller.signal });
    const step = entries.next();
    controller.abort('enough');
    await expect(step).rejects.toBe('enough');
    engine.release();
    while (named(engine.ops, CLOSE).length === 0) await turn();
    expect(engine.openScans.size).toBe(0);
  });

  test('between steps ends the loop, although more was fetched', async () => {
    const { db, engine } = await filled(2000, 100);
    const controller = new AbortController();
    const seen: string[] = [];
    const loop = async (): Promise<void> => {
      for await (const key of db.keys({ signal: controller.signal })) {
        seen.push(key);
        if (seen.length === 3) controller.abort();
      }
    };
    await expect(loop()).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    expect(seen.length).toBe(3);
    while (engine.openScans.size > 0) await turn();
  });

  test('before the call refuses it; after the end it changes nothing', async () => {
    const { db } = await filled(3);
    expect(() => db.keys({ signal: AbortSignal.abort() })).toThrow(expect.objectContaining({ name: 'AbortError' }));
    const controller = new AbortController();
    const keys = db.keys({ signal: controller.signal });
    await collect(keys);
    controller.abort();
    expect(await keys.next()).toEqual({ done: true, value: undefined });
  });
});

describe('errors', () => {
  test.each([
    [{ gt: 'a', gte: 'a' }],
    [{ lt: 'a', lte: 'a' }],
    [{ limit: -1 }],
    [{ limit: 1.5 }],
    [{ limit: Number.NaN }],
    [{ prefix: 5 as never }],
  ])('%j is refused at the call', async (options) => {
    const { db, engine } = await filled(1);
    for (const scan of [() => db.keys(options), () => db.values(options), () => db.entries(options)]) {
      expect(scan).toThrow(code('VARVE_INVALID_ARGUMENT'));
    }
    expect(engine.ops).toEqual([]);
  });

  test('of the engine end the loop and close the scan', async () => {
    const { db, engine } = await filled(2000, 100);
    engine.fault = ({ op }) => (op === NEXT ? { code: 1, message: 'A block is damaged.' } : undefined);
    await expect(collect(db.entries())).rejects.toThrow(code('VARVE_CORRUPT'));
    while (engine.openScans.size > 0) await turn();
  });

  // The story: in the engine a scan that failed stays open. A count of a damaged table left its own behind, with the files that it read.
  test('of the engine end a count and close its scan', async () => {
    const { db, engine } = await filled(2000);
    engine.fault = ({ op }) => (op === NEXT ? { code: 1, message: 'A block is damaged.' } : undefined);
    await expect(db.count()).rejects.toThrow(code('VARVE_CORRUPT'));
    for (let i = 0; i < 20; i++) await turn();
    expect(engine.openScans.size).toBe(0);
  });

  test('of an iterator that is not consumed have no effect', async () => {
    const { db, engine } = await filled(1);
    engine.fault = () => ({ code: 1, message: 'Damaged.' });
    db.entries();
    await expect(db.get('a')).rejects.toThrow(code('VARVE_CORRUPT'));
    await turn();
  });

  test('of a value that cannot be read end the loop there', async () => {
    const { db } = await openFake<string, number>({
      values: {
        name: 'picky',
        encode: (value) => new Uint8Array([value]),
        decode: ([value]) => {
          if (value === 2) throw new RangeError('no');
          return value as number;
        },
      },
    });
    await db.setMany([
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ]);
    const seen: number[] = [];
    const loop = async (): Promise<void> => {
      for await (const value of db.values()) seen.push(value);
    };
    await expect(loop()).rejects.toThrow(code('VARVE_INVALID_VALUE'));
    expect(seen).toEqual([1]);
    expect(await collect(db.keys())).toEqual(['a', 'b', 'c']);
  });

  test('of a closed store reach an open iterator', async () => {
    const { db } = await filled(2000, 100);
    const entries = db.entries();
    await entries.next();
    await db.close();
    const drain = async (): Promise<void> => {
      while (!(await entries.next()).done);
    };
    await expect(drain()).rejects.toThrow(code('VARVE_CLOSED'));
  });
});
