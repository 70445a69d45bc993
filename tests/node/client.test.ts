/** The client: how operations are sent, and what happens to them when something fails. */

import { describe, expect, test } from 'vitest';
import { structured } from '../../js/src/codec/values.ts';
import type { VarveError } from '../../js/src/errors.ts';
import type { Receipt, ValueCodec } from '../../js/src/types.ts';
import { openFake } from './support/open-fake.ts';

const code = (expected: string): unknown => expect.objectContaining({ code: expected });

describe('batching', () => {
  test('the operations of a turn travel in one frame', async () => {
    const { db, engine } = await openFake<string, number>();
    const results = await Promise.all([
      db.set('a', 1),
      db.get('a'),
      ...Array.from({ length: 98 }, (_, i) => db.set(`k${i}`, i)),
    ]);
    expect(engine.frames.map((ops) => ops.length)).toEqual([100]);
    expect(results[1]).toBe(1);
    expect((results[99] as Receipt).sequence).toBe(99);
  });

  test('an awaited operation costs one frame there and one back', async () => {
    const { db, engine } = await openFake<string, number>();
    for (let i = 0; i < 5; i++) await db.set('a', i);
    expect(engine.frames.map((ops) => ops.length)).toEqual([1, 1, 1, 1, 1]);
    expect(engine.answerBytes.length).toBe(5);
    expect(engine.messages.map(({ type }) => type)).toEqual(['open']);
  });

  test('calls in microtasks of one turn share a frame where the first is not yet sent', async () => {
    const { db, engine } = await openFake<string, number>();
    const first = db.get('a');
    const second = Promise.resolve().then(() => db.get('b'));
    await Promise.all([first, second]);
    expect(engine.ops.length).toBe(2);
    expect(engine.frames.length).toBeLessThanOrEqual(2);
  });

  test('a frame over 1 MiB is sent early, in order', async () => {
    const { db, engine } = await openFake<string, Uint8Array>();
    const writes = Array.from({ length: 5 }, (_, i) => db.set(`k${i}`, new Uint8Array(400_000)));
    const receipts = await Promise.all(writes);
    expect(engine.frames.map((ops) => ops.length)).toEqual([3, 2]);
    expect(receipts.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
  });

  test('answers of several frames find their operations', async () => {
    const { db, engine } = await openFake<string, number>();
    engine.hold();
    const written = db.set('a', 1);
    await new Promise(setImmediate);
    const read = db.get('a');
    await new Promise(setImmediate);
    const other = db.get('b');
    engine.release();
    expect(await Promise.all([written, read, other])).toEqual([{ sequence: 1, durability: 'relaxed' }, 1, undefined]);
    expect(engine.frames.length).toBe(3);
  });

  test('frames name the first request whose answer is awaited, and no client where no other engine will be asked', async () => {
    const { db, engine } = await openFake<string, number>();
    await db.get('a');
    engine.hold();
    const gets = [db.get('b'), db.get('c')];
    await Promise.resolve();
    gets.push(db.get('d'));
    await Promise.resolve();
    engine.release();
    await Promise.all(gets);
    await db.get('e');
    expect(engine.client).toBe(0);
    expect(engine.answered).toEqual([0, 1, 1, 4]);
  });

  test('frames carry no more than their operations', async () => {
    const { db, engine } = await openFake<string, Uint8Array>();
    await db.set('0123456789abcdef', new Uint8Array(100));
    // Frame and operation headers, a key with its type byte, a value with its tag byte, padding.
    expect(engine.frameBytes).toEqual([24 + 16 + 17 + 101 + 2]);
  });
});

describe('errors', () => {
  test('the error of one operation is its own', async () => {
    const { db, engine } = await openFake<string, number>();
    engine.fault = ({ op }) => (op === 4 ? { code: 2, message: 'The storage is full.' } : undefined);
    const [set, get] = await Promise.allSettled([db.set('a', 1), db.get('a')]);
    expect(set).toEqual({ status: 'rejected', reason: code('VARVE_STORAGE_FULL') });
    expect(get).toEqual({ status: 'fulfilled', value: undefined });
  });

  test('a refused key or value rejects its own call only, and nothing of it is sent', async () => {
    const { db, engine } = await openFake();
    const results = await Promise.allSettled([
      db.set('a', 1),
      db.set(Number.NaN, 1),
      db.set('b', () => 1),
      db.set('c', 3),
    ]);
    expect(results.map((result) => (result.status === 'rejected' ? (result.reason as VarveError).code : 'ok'))).toEqual(
      ['ok', 'VARVE_INVALID_KEY', 'VARVE_INVALID_VALUE', 'ok'],
    );
    expect(engine.frames.map((ops) => ops.length)).toEqual([2]);
  });

  test('a stored value that the codec cannot read rejects its own read', async () => {
    const picky: ValueCodec<number> = {
      name: 'picky',
      encode: (value) => new Uint8Array([value]),
      decode: ([value]) => {
        if (value === 13) throw new RangeError('unlucky');
        return value as number;
      },
    };
    const { db } = await openFake<string, number>({ values: picky });
    await db.setMany([
      ['a', 12],
      ['b', 13],
    ]);
    expect(await db.get('a')).toBe(12);
    await expect(db.get('b')).rejects.toThrow(code('VARVE_INVALID_VALUE'));
    expect(await db.get('a')).toBe(12);
  });

  test('the end of the worker rejects everything, then and afterwards', async () => {
    const { db, engine } = await openFake<string, number>();
    engine.hold();
    const sent = db.get('a');
    await new Promise(setImmediate);
    const queued = db.get('b');
    const stats = db.stats();
    engine.crash('out of memory');
    const failures = await Promise.allSettled([sent, queued, stats, db.get('c'), db.stats()]);
    for (const failure of failures) {
      expect(failure).toMatchObject({
        status: 'rejected',
        reason: { code: 'VARVE_INTERNAL', message: expect.stringContaining('out of memory') },
      });
    }
    expect(engine.isTerminated).toBe(true);
    await db.close();
  });

  test('an engine that reports its own failure rejects everything with its error', async () => {
    const { db, engine } = await openFake<string, number>();
    engine.hold();
    const read = db.get('a');
    engine.send({ type: 'dead', error: { code: 'VARVE_POISONED', message: 'A flush failed.' } });
    await expect(read).rejects.toThrow(code('VARVE_POISONED'));
    await expect(db.get('b')).rejects.toThrow(code('VARVE_POISONED'));
  });

  test.each<[string, (frame: ArrayBuffer) => ArrayBuffer]>([
    ['cut short', (frame) => frame.slice(0, -4)],
    [
      'for an unknown request',
      (frame) => {
        new DataView(frame).setUint32(8, 77, true);
        return frame;
      },
    ],
    [
      'with another magic',
      (frame) => {
        new Uint8Array(frame)[0] = 0;
        return frame;
      },
    ],
  ])('an answer %s ends the client with an error', async (_, damage) => {
    const { db, engine } = await openFake<string, number>();
    engine.damage = damage;
    await expect(db.get('a')).rejects.toThrow(code('VARVE_INTERNAL'));
    expect(engine.isTerminated).toBe(true);
  });

  test('an answer to a message that was not sent ends the client', async () => {
    const { db, engine } = await openFake<string, number>();
    engine.hold();
    const read = db.get('a');
    engine.send({ type: 'result', id: 99, value: 1 });
    await expect(read).rejects.toThrow(code('VARVE_INTERNAL'));
  });

  test('a message that cannot be read ends the client', async () => {
    const { db, engine } = await openFake<string, number>();
    const read = db.get('a');
    engine.onmessageerror?.({} as MessageEvent);
    await expect(read).rejects.toThrow(code('VARVE_INTERNAL'));
  });
});

describe('abort', () => {
  test('before the frame is sent, the operation is not sent', async () => {
    const { db, engine } = await openFake<string, number>();
    const controller = new AbortController();
    const a = db.set('a', 1);
    const b = db.set('b', 2, { signal: controller.signal });
    const c = db.set('c', 3);
    controller.abort('changed my mind');
    await expect(b).rejects.toBe('changed my mind');
    await Promise.all([a, c]);
    expect(await db.getMany(['a', 'b', 'c'])).toEqual([1, undefined, 3]);
    expect(engine.frames[0]?.length).toBe(2);
  });

  test('of the only operation sends nothing', async () => {
    const { db, engine } = await openFake<string, number>();
    const controller = new AbortController();
    const read = db.get('a', { signal: controller.signal });
    controller.abort();
    await expect(read).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    await new Promise(setImmediate);
    expect(engine.frames).toEqual([]);
    expect(await db.get('a')).toBe(undefined);
  });

  test('after the frame was sent ends the waiting; its late answer is dropped', async () => {
    const { db, engine } = await openFake<string, number>();
    engine.hold();
    const controller = new AbortController();
    const write = db.set('a', 1, { signal: controller.signal });
    const other = db.get('a');
    await new Promise(setImmediate);
    controller.abort();
    await expect(write).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    engine.release();
    expect(await other).toBe(1);
  });

  test('an aborted signal refuses at once; one that aborts later changes nothing', async () => {
    const { db, engine } = await openFake<string, number>();
    await expect(db.set('a', 1, { signal: AbortSignal.abort() })).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
    expect(engine.frames).toEqual([]);
    const controller = new AbortController();
    await db.set('a', 1, { signal: controller.signal });
    controller.abort();
    expect(await db.get('a')).toBe(1);
  });

  test('a batch that an aborted signal refused can be committed later', async () => {
    const { db, engine } = await openFake<string, number>();
    const batch = db.batch().set('a', 1);
    await expect(batch.commit({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
    expect(engine.frames).toEqual([]);
    await batch.commit();
    expect(await db.get('a')).toBe(1);
  });
});

describe('close', () => {
  test('waits for the calls before it, then ends the worker', async () => {
    const { db, engine } = await openFake<string, number>();
    const write = db.set('a', 1);
    const closed = db.close();
    expect(await write).toEqual({ sequence: 1, durability: 'relaxed' });
    await closed;
    expect(engine.frames.length).toBe(1);
    expect(engine.messages.map(({ type }) => type)).toEqual(['open', 'close']);
    expect(engine.isTerminated).toBe(true);
  });

  test('later calls are refused as closed', async () => {
    const { db } = await openFake<string, number>();
    const closed = db.close();
    const calls = [
      db.get('a'),
      db.set('a', 1),
      db.getMany(['a']),
      db.delete('a'),
      db.clear(),
      db.flush(),
      db.stats(),
      db.compact(),
      db.setMany([['a', 1]]),
      db.batch().set('a', 1).commit(),
    ];
    for (const call of calls) await expect(call).rejects.toThrow(code('VARVE_CLOSED'));
    expect(() => db.entries()).toThrow(code('VARVE_CLOSED'));
    await closed;
    await expect(db.get('a')).rejects.toThrow(code('VARVE_CLOSED'));
  });

  test('twice is the same as once', async () => {
    const { db, engine } = await openFake<string, number>();
    await Promise.all([db.close(), db.close()]);
    await db.close();
    expect(engine.messages.filter(({ type }) => type === 'close').length).toBe(1);
  });

  test('that fails reports the reason, and the worker is ended all the same', async () => {
    const { db, engine } = await openFake<string, number>();
    engine.reply = (message) =>
      message.type === 'close'
        ? { type: 'failed', id: message.id, error: { code: 'VARVE_IO', message: 'The disk is gone.' } }
        : undefined;
    await expect(db.close()).rejects.toThrow(code('VARVE_IO'));
    expect(engine.isTerminated).toBe(true);
  });

  test('comes at the end of an await using block', async () => {
    const { db, engine } = await openFake<string, number>();
    {
      await using scoped = db;
      await scoped.set('a', 1);
    }
    expect(engine.isTerminated).toBe(true);
  });
});

test('the value is encoded when set is called', async () => {
  const { db } = await openFake<string, { n: number }>({ values: structured.as<{ n: number }>() });
  const value = { n: 1 };
  const write = db.set('a', value);
  value.n = 2;
  await write;
  expect(await db.get('a')).toEqual({ n: 1 });
});
