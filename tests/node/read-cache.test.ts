// The cache of a tab: which reads it answers, and that no answer is older than the one of the store. Tabs share a store, each with a
// page and a worker of its own in this realm.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { KeptReads } from '../../js/src/cache/kept-reads.ts';
import type { Port } from '../../js/src/client/client.ts';
import { LEASE_MARGIN_MS, LEASE_MS } from '../../js/src/protocol/lease.ts';
import { EngineServer } from '../../js/src/server/engine-server.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { stubOpfs } from './support/fake-opfs.ts';
import { type Call, isLinearizable } from './support/linearizable.ts';
import { Random } from './support/random.ts';
import { collect } from './support/stores.ts';

type Db = Store<Key, unknown>;

interface Tab {
  readonly db: Db;
  readonly worker: () => Port;
  /** Messages from its worker and to it since the last call. */
  messages(): string[];
  /** Until it resolves, the page gets no messages: it is busy. */
  busy: Promise<unknown> | undefined;
}

const PATIENT = { timeout: 30_000 };
const tabs: Tab[] = [];

beforeEach(() => {
  stubOpfs();
});

afterEach(async () => {
  for (const { db } of tabs.splice(0).reverse()) await db.close().catch(() => undefined);
  vi.unstubAllGlobals();
});

async function openTab(options: OpenOptions<Key, unknown> = {}): Promise<Tab> {
  let messages: string[] = [];
  let worker: Port | undefined;
  const note = (data: unknown): void => {
    messages.push(data instanceof ArrayBuffer ? 'frame' : (data as { type: string }).type);
  };
  const spawn = (): Port => {
    const inner = spawnServer();
    worker = inner;
    const outer: Port = {
      onmessage: null,
      postMessage: (message, transfer) => {
        note(message);
        inner.postMessage(message, transfer);
      },
      terminate: () => inner.terminate?.(),
    };
    let last = Promise.resolve<unknown>(undefined);
    inner.onmessage = (event) => {
      // In order.
      last = last
        .then(() => tab.busy)
        .then(() => {
          note(event.data);
          outer.onmessage?.(event);
        });
    };
    return outer;
  };
  const tab: Tab = {
    db: undefined as unknown as Db,
    worker: () => worker as Port,
    messages: () => {
      const all = messages;
      messages = [];
      return all;
    },
    busy: undefined,
  };
  const db = await openStore<Key, unknown>('cached', { wasm, memoryBytes: 2 ** 20, ...options }, spawn, {});
  Object.assign(tab, { db });
  tabs.push(tab);
  // The code of the cache is loaded behind the opening.
  if (options.cache !== false) {
    await expect
      .poll(async () => {
        await db.get('warm');
        tab.messages();
        await db.get('warm');
        return tab.messages();
      }, PATIENT)
      .toEqual([]);
  }
  return tab;
}

/** Runs reads in a later turn. Returns their results, and whether they were answered without a message. */
async function local<T>(tab: Tab, read: () => Promise<T>): Promise<[T, boolean]> {
  await new Promise((resolve) => setImmediate(resolve));
  tab.messages();
  const value = await read();
  return [value, !tab.messages().includes('frame')];
}

describe('a tab', () => {
  test('answers keys, absent ones, existence and several keys without a message', async () => {
    const tab = await openTab();
    const { db } = tab;
    await db.set('a', { deep: [1] });
    expect(await local(tab, () => db.get('a'))).toEqual([{ deep: [1] }, false]);
    expect(await local(tab, () => db.get('a'))).toEqual([{ deep: [1] }, true]);
    expect(await local(tab, () => db.get('nothing'))).toEqual([undefined, false]);
    expect(await local(tab, () => db.get('nothing'))).toEqual([undefined, true]);
    expect(await local(tab, () => db.has('a'))).toEqual([true, true]);
    expect(await local(tab, () => db.has('nothing'))).toEqual([false, true]);
    expect(await local(tab, () => db.has('other'))).toEqual([false, false]);
    expect(await local(tab, () => db.has('other'))).toEqual([false, true]);
    expect(await local(tab, () => db.getMany(['nothing', 'a', 'a']))).toEqual([
      [undefined, { deep: [1] }, { deep: [1] }],
      true,
    ]);
    await db.setMany([
      ['m', 1],
      ['n', 2],
    ]);
    expect(await local(tab, () => db.getMany(['m', 'a', 'n', 'o']))).toEqual([[1, { deep: [1] }, 2, undefined], false]);
    expect(await local(tab, () => db.getMany(['o', 'n', 'm']))).toEqual([[undefined, 2, 1], true]);
  });

  test('changes of a returned value affect only that value', async () => {
    const tab = await openTab();
    const { db } = tab;
    await db.set('a', { deep: [1] });
    await db.set('b', Uint8Array.of(1, 2));
    for (let i = 0; i < 3; i++) {
      const value = (await db.get('a')) as { deep: number[] };
      expect(value).toEqual({ deep: [1] });
      value.deep.push(2);
      const bytes = (await db.get('b')) as Uint8Array;
      expect(bytes).toEqual(Uint8Array.of(1, 2));
      bytes.fill(9);
      for (const [, entry] of await collect(db.entries({ gte: 'a', lte: 'b' }))) {
        if (entry instanceof Uint8Array) entry.fill(9);
      }
    }
  });

  test('answers short ranges, in both directions, as entries, keys, values and a count', async () => {
    const tab = await openTab();
    const { db } = tab;
    await db.setMany(Array.from({ length: 20 }, (_, i) => [['n', i], i] as const));
    const reads: (() => Promise<unknown>)[] = [
      () => collect(db.entries({ prefix: ['n'] })),
      () => collect(db.entries({ prefix: ['n'], reverse: true, limit: 3 })),
      () => collect(db.keys({ gt: ['n', 3], lte: ['n', 9] })),
      () => collect(db.values({ gte: ['n', 3], lt: ['n', 9], limit: 2 })),
      () => db.count({ prefix: ['n'] }),
      () => collect(db.entries({ prefix: ['none'] })),
    ];
    for (const read of reads) {
      const [first, isLocal] = await local(tab, read);
      expect(isLocal).toBe(false);
      expect(await local(tab, read)).toEqual([first, true]);
    }
    await db.set(['n', 2.5], 'new');
    expect(await local(tab, () => collect(db.keys({ gt: ['n', 3], lte: ['n', 9] })))).toMatchObject([
      { length: 6 },
      true,
    ]);
    expect(await local(tab, () => db.count({ prefix: ['n'] }))).toEqual([21, false]);
    // Longer than one message.
    for (let i = 100; i < 104; i++) await db.set(['n', i], 'x'.repeat(10_000));
    for (let i = 0; i < 2; i++) {
      expect(await local(tab, () => collect(db.values({ prefix: ['n'] })))).toMatchObject([{ length: 25 }, false]);
    }
  });

  test('does not keep what expires', async () => {
    const tab = await openTab();
    const { db } = tab;
    await db.set(['e', 1], 'stays');
    await db.set(['e', 2], 'expires', { expiresIn: 60_000 });
    for (const read of [
      () => db.get(['e', 2]),
      () => collect(db.entries({ prefix: ['e'] })),
      () => collect(db.keys({ prefix: ['e'], reverse: true })),
      () => db.count({ prefix: ['e'] }),
      () =>
        db.getMany([
          ['e', 1],
          ['e', 2],
        ]),
    ]) {
      await read();
      expect((await local(tab, read))[1]).toBe(false);
    }
    await db.get(['e', 1]);
    expect(await local(tab, () => db.get(['e', 1]))).toEqual(['stays', true]);
    await db.set(['e', 1], 'expires', { expiresIn: 60_000 });
    await db.get(['e', 1]);
    expect(await local(tab, () => db.get(['e', 1]))).toEqual(['expires', false]);
  });

  test('keeps what it writes over what it has read', async () => {
    const tab = await openTab();
    const { db } = tab;
    const writes: [unknown, () => Promise<unknown>][] = [
      [1, () => db.set('a', 1)],
      [undefined, () => db.delete('a')],
      [2, () => db.setMany([['a', 2]])],
      [3, () => db.batch().set('z', 1).set('a', 3).commit()],
      [4, () => db.transaction((tx) => tx.set('a', 4))],
      [5, () => db.update('a', () => 5)],
      [{ of: 'bytes' }, () => db.set('a', { of: 'bytes' })],
    ];
    await db.get('a');
    for (const [value, write] of writes) {
      const writing = write();
      if (value !== 4 && value !== 5) expect(await local(tab, () => db.get('a'))).toEqual([value, false]);
      await writing;
      expect(await local(tab, () => db.get('a'))).toEqual([value, true]);
    }
    await db.set('a', 'never read again').catch(() => undefined);
    await expect(db.set('a', 9, { ifSequence: 1 })).rejects.toMatchObject({ code: 'VARVE_CONFLICT' });
    expect(await local(tab, () => db.get('a'))).toEqual(['never read again', false]);
    for (const write of [() => db.deleteRange({ gte: 'a', lt: 'b' }), () => db.clear()]) {
      await db.set('a', 1);
      await db.get('a');
      const writing = write();
      expect(await local(tab, () => db.get('a'))).toEqual([undefined, false]);
      await writing;
    }
    // So many that they are not followed one by one.
    await db.setMany(Array.from({ length: 300 }, (_, i) => [i, i] as const));
    expect(await local(tab, () => db.get('a'))).toEqual([undefined, false]);
  });

  test('asks the store for snapshots, transactions and getEntry', async () => {
    const { db } = await openTab();
    await db.set('a', 1);
    await db.get('a');
    const snapshot = db.snapshot();
    await db.set('a', 2);
    expect(await db.get('a')).toBe(2);
    expect(await snapshot.get('a')).toBe(1);
    expect(await collect(snapshot.values({ gte: 'a' }))).toEqual([1]);
    expect(await db.transaction((tx) => tx.get('a'))).toBe(2);
    expect((await db.getEntry('a'))?.value).toBe(2);
    await snapshot.close();
  });

  test('peeks at what is here', async () => {
    const { db } = await openTab();
    expect(db.peek('a')).toBeUndefined();
    await db.set('a', 1);
    expect(db.peek('a')).toBeUndefined();
    await db.get('a');
    expect(db.peek('a')).toBe(1);
    const writing = db.set('a', 2);
    expect(db.peek('a')).toBeUndefined();
    await writing;
    expect(db.peek('a')).toBe(2);
    expect(() => db.peek(Number.NaN)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
    await db.close();
    expect(db.peek('a')).toBeUndefined();
  });

  test('gives the same errors, and nothing after its close', async () => {
    const { db } = await openTab();
    await db.set('a', 1);
    await db.get('a');
    await expect(db.get(Number.NaN)).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY' });
    await expect(db.getMany(['a', Number.NaN])).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY' });
    await expect(db.get('a', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
    await db.close();
    await expect(db.get('a')).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  });
});

// A set that was refused with VARVE_CONFLICT on Node was then what `get` returned. So an index of a collection was read that an import had
// put out of date: the refused write of a document had left "absent" behind for the import's note.
test('a store that nobody shares keeps nothing of a write that failed', async () => {
  const db = await openStore<Key, unknown>('alone', { wasm, storage: 'memory' }, spawnServer);
  await db.set('a', 1);
  const read = async (): Promise<unknown[]> => [await db.get('a'), await db.get('b'), db.peek('a')];
  // The cache is loaded by then.
  await expect.poll(read).toEqual([1, undefined, 1]);
  const ending = new AbortController();
  const writes: (() => Promise<unknown>)[] = [
    () => db.set('a', 2, { ifSequence: 99 }),
    () => db.delete('a', { ifSequence: 99 }),
    () => db.batch().set('b', 2).set('a', 2, { ifSequence: null }).commit(),
    () => db.set('a', 2, { signal: ending.signal }),
  ];
  for (const write of writes) {
    const writing = write();
    ending.abort();
    await expect(writing).rejects.toThrow();
    expect(await read()).toEqual([1, undefined, 1]);
  }
  await db.close();
});

describe('two tabs', () => {
  test('see each other at once', async () => {
    const [first, second] = [await openTab(), await openTab()];
    for (const [reader, writer] of [
      [first, second],
      [second, first],
    ] as const) {
      const writes: [unknown, () => Promise<unknown>][] = [
        [1, () => writer.db.set('a', 1)],
        [undefined, () => writer.db.delete('a')],
        [2, () => writer.db.batch().set('a', 2).commit()],
        [3, () => writer.db.transaction((tx) => tx.set('a', 3))],
        [undefined, () => writer.db.deleteRange({ lt: 'b' })],
        [4, () => writer.db.set('a', 4)],
        [undefined, () => writer.db.clear()],
      ];
      for (const [value, write] of writes) {
        await reader.db.get('a');
        await collect(reader.db.entries({ lt: 'b' }));
        await write();
        expect(reader.db.peek('a')).toBeUndefined();
        expect(await collect(reader.db.values({ lt: 'b' }))).toEqual(value === undefined ? [] : [value]);
        expect(await reader.db.get('a')).toBe(value);
        expect(await local(reader, () => reader.db.get('a'))).toEqual([value, true]);
      }
    }
  });

  test('do not wait for each other if they have nothing in common', async () => {
    const [first, second] = [await openTab(), await openTab()];
    await second.db.set('shared', 1);
    await first.db.get('a');
    await first.db.get('shared');
    await second.db.set('shared', 2);
    await first.db.get('shared');
    first.messages();
    await second.db.set('b', 1);
    await second.db.delete('c');
    expect(first.messages().filter((type) => type === 'revoke')).toEqual([]);
    expect(first.db.peek('a')).toBeUndefined();
    await second.db.set('shared', 3);
    expect(await first.db.get('shared')).toBe(3);
  });

  test('a busy tab delays a write of what it keeps, and nothing else, until its lease has ended', async () => {
    const [first, second, third] = [await openTab(), await openTab(), await openTab({ cache: false })];
    // Of a tab that was alone, everything is revoked once.
    await second.db.set('a', 2);
    await first.db.get('a');
    expect(first.db.peek('a')).toBe(2);
    let wake = (): void => undefined;
    first.busy = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const began = performance.now();
    let isWritten = false;
    const writing = second.db.set('a', 3).then(() => {
      isWritten = true;
    });
    expect(await third.db.get('a')).toBe(2);
    await third.db.set('c', 1);
    expect(isWritten).toBe(false);
    expect(first.db.peek('a')).toBe(2);
    await writing;
    expect(performance.now() - began).toBeGreaterThan(LEASE_MS / 2);
    expect(performance.now() - began).toBeLessThan(LEASE_MS + LEASE_MARGIN_MS + 1500);
    expect(first.db.peek('a')).toBeUndefined();
    // From now on nobody waits for it.
    const again = performance.now();
    await second.db.set('a', 4);
    expect(performance.now() - again).toBeLessThan(LEASE_MS / 2);
    wake();
    expect(await first.db.get('a')).toBe(4);
  });

  test('a lease that is used goes on, with a message now and then', async () => {
    const [first, second] = [await openTab(), await openTab()];
    await second.db.set('a', 1);
    await first.db.get('a');
    first.messages();
    const until = performance.now() + 1.5 * LEASE_MS;
    let frames = 0;
    let calls = 0;
    await expect
      .poll(async () => {
        expect(await first.db.get('a')).toBe(1);
        for (const type of first.messages()) {
          frames += type === 'frame' ? 1 : 0;
          calls += type === 'call' ? 1 : 0;
        }
        return performance.now() > until;
      }, PATIENT)
      .toBe(true);
    expect(frames).toBe(0);
    expect(calls).toBeGreaterThan(0);
    expect(calls).toBeLessThan(5);
    await second.db.set('a', 2);
    expect(await first.db.get('a')).toBe(2);
  });

  // Nothing can be sent while a value is encoded. The set was refused because of that, and no lease was renewed any more.
  test('a look at the cache in a getter renews an old lease behind the write', async () => {
    const { db, messages } = await openTab();
    const now = performance.now.bind(performance);
    let later = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + later);
    await db.set('a', 1);
    await db.get('a');
    later = 0.6 * LEASE_MS;
    const before = db.set('b', 1);
    const value = {
      get a() {
        return db.peek('a');
      },
    };
    messages();
    await Promise.all([before, db.set('c', value)]);
    expect(messages()).toContain('call');
    expect(await db.get('c')).toEqual({ a: 1 });
    clock.mockRestore();
  });

  test('when the leader dies, the next one waits for the tabs that may keep something', async () => {
    const [first, second, third] = [await openTab(), await openTab(), await openTab()];
    await first.db.set('a', 1);
    await third.db.get('a');
    expect(third.db.peek('a')).toBe(1);
    first.worker().terminate?.();
    await second.db.set('a', 2);
    expect(third.db.peek('a')).toBeUndefined();
    expect(await third.db.get('a')).toBe(2);
    expect(await first.db.get('a')).toBe(2);
  });

  // A page was frozen before it had the answers to a read and a write. Meanwhile another tab wrote the key that it read. Back again, it
  // sent both again. The write was done already, so the read saw the store before it. That old value was kept under a new lease, and
  // answered every later read.
  test('a read that is sent again, and sees an earlier time, is not kept', async () => {
    const first = await openTab();
    const page = new EventTarget();
    vi.stubGlobal('document', page);
    const second = await openTab();
    vi.stubGlobal('document', undefined);
    // From now on the first tab keeps nothing of these.
    await second.db.setMany([
      ['a', 1],
      ['b', 0],
    ]);
    const { receive } = EngineServer.prototype;
    let isFrozen = false;
    const received = vi.spyOn(EngineServer.prototype, 'receive');
    received.mockImplementation(function (this: EngineServer, data, from) {
      receive.call(this, data, from);
      if (isFrozen || from === undefined || !(data instanceof ArrayBuffer)) return;
      // The frame of the second tab ran. Its answer is on the way.
      isFrozen = true;
      page.dispatchEvent(new Event('freeze'));
    });
    const [reading, writing] = [second.db.get('a'), second.db.set('b', 1)];
    await vi.waitUntil(() => isFrozen, PATIENT);
    received.mockRestore();
    await first.db.set('a', 2);
    page.dispatchEvent(new Event('resume'));
    await writing;
    expect(await reading).toBe(1);
    expect(second.db.peek('a')).toBeUndefined();
    expect(await second.db.get('a')).toBe(2);
  });

  // Both took the range from the cache, and the sequence after which changes follow from the store. That question waited behind a Blob. A
  // busy tab that delays a write does the same. So the sequence was newer than the range, and a write in between was never shown.
  test.each<[string, (db: Db) => () => unknown]>([
    [
      'a live query',
      (db) => {
        const live = db.live({ prefix: ['n'], as: 'values' });
        live.subscribe(() => undefined);
        return () => live.value;
      },
    ],
    [
      'a read behind changes()',
      (db) => {
        let found: unknown;
        db.changes({ prefix: ['n'] });
        void collect(db.values({ prefix: ['n'] })).then((values) => {
          found = values;
        });
        return () => found;
      },
    ],
  ])('%s misses nothing while its frames wait for a Blob', async (_, follow) => {
    const [first, second] = [await openTab(), await openTab()];
    await second.db.set(['n', 1], 'old');
    // The code that it needs is loaded by then.
    await expect.poll(follow(first.db), PATIENT).toEqual(['old']);
    const read = (): Promise<unknown[]> => collect(first.db.values({ prefix: ['n'] }));
    await read();
    expect(await local(first, read)).toEqual([['old'], true]);
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { arrayBuffer } = Blob.prototype;
    const gated = vi.spyOn(Blob.prototype, 'arrayBuffer').mockImplementation(async function (this: Blob) {
      await gate;
      return arrayBuffer.call(this);
    });
    const written = first.db.set('blob', new Blob(['x']));
    const found = follow(first.db);
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    await second.db.set(['n', 2], 'new');
    release();
    await written;
    gated.mockRestore();
    await expect.poll(found, PATIENT).toEqual(['old', 'new']);
  });
});

test('reads are linearizable, whatever tabs do at the same time', async () => {
  type State = Readonly<Record<string, number>>;
  const keys = ['a', 'b', 'c'];
  for (let seed = 1; seed <= 12; seed++) {
    const random = new Random(seed);
    const three = [await openTab(), await openTab(), await openTab()];
    const history: Call<State>[] = [];
    let stamp = 0;
    let hits = 0;
    let value = 0;
    const note = async (
      client: number,
      touched: string[],
      isWrite: boolean,
      run: (db: Db) => Promise<unknown>,
      apply: (state: State, result: unknown) => State | undefined,
    ): Promise<void> => {
      const call: Call<State> = {
        client,
        start: ++stamp,
        end: Number.POSITIVE_INFINITY,
        keys: touched,
        isWrite,
        apply: (state) => apply(state, undefined),
      };
      history.push(call);
      const before = stamp;
      const result = await run((three[client] as Tab).db);
      if (!isWrite && stamp === before) hits++;
      call.end = ++stamp;
      call.apply = (state) => apply(state, result);
    };
    await (three[0] as Tab).db.clear();
    const actors = three.map(async (_, client) => {
      for (let i = 0; i < 40; i++) {
        const key = random.pick(keys);
        const roll = random.below(12);
        const is = (state: State, result: unknown, answer: unknown): State | undefined =>
          JSON.stringify(answer) === JSON.stringify(result) ? state : undefined;
        if (roll < 6)
          await note(
            client,
            [key],
            false,
            (db) => db.get(key),
            (state, result) => is(state, result, state[key]),
          );
        else if (roll < 7) {
          await note(
            client,
            keys,
            false,
            (db) => db.getMany(keys),
            (state, result) =>
              is(
                state,
                result,
                keys.map((one) => state[one]),
              ),
          );
        } else if (roll < 9) {
          const entries = (state: State): unknown => Object.entries(state).sort();
          await note(
            client,
            keys,
            false,
            (db) => collect(db.entries({ gte: 'a', lte: 'c' })),
            (state, result) => is(state, result, entries(state)),
          );
        } else if (roll < 11) {
          const next = ++value;
          await note(
            client,
            [key],
            true,
            (db) => db.set(key, next),
            (state) => ({ ...state, [key]: next }),
          );
        } else {
          await note(
            client,
            keys,
            true,
            (db) => db.deleteRange({ gte: 'a', lte: 'b' }),
            (state): State => (state['c'] === undefined ? {} : { c: state['c'] }),
          );
        }
        if (i === 20 && client === 1 && seed % 4 === 0) three[0]?.worker().terminate?.();
      }
    });
    await Promise.all(actors);
    expect(
      isLinearizable<State>(history, {}, (state) => JSON.stringify(Object.entries(state).sort())),
      `seed ${seed}`,
    ).toBe(true);
    expect(hits, `seed ${seed}`).toBeGreaterThan(5);
    for (const { db } of tabs.splice(0).reverse()) await db.close();
  }
});

describe('the cache of reads', () => {
  const entry = (length: number): { bytes: Uint8Array } => ({ bytes: new Uint8Array(length) });
  const put = (kept: KeptReads, id: string, length: number): void => {
    const ticket = kept.read(id);
    kept.keep(ticket, entry(length));
    kept.leave(ticket);
  };
  const here = (kept: KeptReads, ...ids: string[]): string => ids.filter((id) => kept.get(id) !== undefined).join('');

  test('stays within its bytes, and keeps the last ones used', () => {
    const kept = new KeptReads(4000, () => 0, true);
    for (const id of ['a', 'b', 'c', 'd']) put(kept, id, 799);
    expect(here(kept, 'a', 'b', 'c', 'd')).toBe('abcd');
    kept.get('a');
    put(kept, 'e', 799);
    expect(here(kept, 'a', 'b', 'c', 'd', 'e')).toBe('acde');
    // One that would displace most of the others.
    put(kept, 'f', 1000);
    expect(here(kept, 'a', 'c', 'd', 'e', 'f')).toBe('acde');
  });

  test('ends with its lease', () => {
    let now = 0;
    const kept = new KeptReads(1000, () => now);
    put(kept, 'a', 1);
    expect(here(kept, 'a')).toBe('');
    kept.granted(100, false);
    now = 100 + LEASE_MS - 1;
    expect(here(kept, 'a')).toBe('a');
    expect(kept.isOld).toBe(true);
    now++;
    expect(here(kept, 'a')).toBe('');
    kept.granted(now, true);
    expect(here(kept, 'a')).toBe('');
  });
});
