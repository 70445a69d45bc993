/** Stores that tabs share: several pages of one realm, each with a worker of its own, over the same files and locks. */

import { describe, expect, test, vi } from 'vitest';
import { Client, type Port } from '../../js/src/client/client.ts';
import { syncOperation } from '../../js/src/client/operations.ts';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import { VarveError } from '../../js/src/errors.ts';
import { deleteStore, listStores } from '../../js/src/index.ts';
import { Clients } from '../../js/src/server/clients.ts';
import type { EngineServer } from '../../js/src/server/engine-server.ts';
import { deleteShared } from '../../js/src/share/delete-store.ts';
import { LeaderLink } from '../../js/src/share/link.ts';
import { channelOf, PROTOCOL, workerLock } from '../../js/src/share/names.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Key } from '../../js/src/types.ts';
import { loadEngine } from '../../js/src/wasm/compile.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { leads, openTab, type Tab } from './support/tabs.ts';

test('the page compiles the engine for its worker; if it cannot, the worker does', async () => {
  const posted: unknown[] = [];
  const spawn = (): Port => {
    const worker = spawnServer();
    const post = worker.postMessage.bind(worker);
    worker.postMessage = (message, transfer) => {
      const { type, options } = message as { type?: string; options?: { wasm?: unknown } };
      if (type === 'open') posted.push(options?.wasm);
      post(message, transfer);
    };
    return worker;
  };
  const module = await loadEngine(wasm);
  for (const compile of [async () => module, () => Promise.reject(new Error('not in this page'))]) {
    const db = await openStore<Key, unknown>('shared', { wasm, memoryBytes: 1024 * 1024 }, spawn, { compile });
    await db.close();
  }
  expect(posted).toEqual([module, wasm.href]);
});

test('the first tab leads; others read and write through it, and see one another', async () => {
  const first = await openTab();
  const second = await openTab();
  const third = await openTab();
  await first.db.set('a', 1);
  expect(await second.db.get('a')).toBe(1);
  const receipts = await Promise.all([second.db.set('b', 2), third.db.set('c', 3), first.db.set('d', 4)]);
  expect(receipts.map(({ sequence }) => sequence).sort()).toEqual([2, 3, 4]);
  expect(await first.db.getMany(['a', 'b', 'c', 'd'])).toEqual([1, 2, 3, 4]);
  const seen: Key[] = [];
  for await (const key of third.db.keys()) seen.push(key);
  expect(seen).toEqual(['a', 'b', 'c', 'd']);
  expect((await first.db.stats()).sharing).toEqual({ leads: true, via: 'worker', clients: 3 });
  expect((await third.db.stats()).sharing).toEqual({ leads: false, via: 'channel', clients: 3 });
});

test('when the leader closes, another leads, and what was written is there', async () => {
  const first = await openTab();
  const second = await openTab();
  await first.db.set('a', 1);
  await second.db.set('b', 2);
  const closing = first.db.close();
  const written = second.db.set('c', 3);
  await closing;
  await written;
  expect(await leads(second)).toBe(true);
  expect(await second.db.getMany(['a', 'b', 'c'])).toEqual([1, 2, 3]);
  await expect(first.db.get('a')).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
});

// A seed of the API's fuzz found this: over IndexedDB, where an answer waits for its commit, the follower's close was answered first.
test.each(['opfs', 'indexeddb'] as const)('a tab that does not lead closes behind its writes (%s)', async (storage) => {
  const first = await openTab({ storage });
  const second = await openTab({ storage });
  await first.db.set('a', 1);
  const written = second.db.set('b', 2);
  const closing = second.db.close();
  await expect(written).resolves.toMatchObject({ sequence: 2 });
  await closing;
  expect(await first.db.get('b')).toBe(2);
});

test('when the worker of the leader is ended, both tabs continue', async () => {
  const first = await openTab();
  const second = await openTab();
  await first.db.set('a', 1);
  first.worker().terminate?.();
  await Promise.all([first.db.set('b', 2), second.db.set('c', 3)]);
  expect(await first.db.getMany(['a', 'b', 'c'])).toEqual([1, 2, 3]);
  expect(await leads(second)).toBe(true);
  expect(await leads(first)).toBe(false);
});

test('a frame whose answers came in part when the leader was ended is answered wholly, and what it opened stays what it was', async () => {
  const memoryBytes = 16 << 20;
  const [first, second] = [await openTab({ memoryBytes }), await openTab({ memoryBytes })];
  const value = (i: number): Uint8Array => new Uint8Array(900_000).fill(i + 1);
  await first.db.setMany(Array.from({ length: 10 }, (_, i) => [i, value(i)] as const));
  const worker = first.worker();
  const hear = worker.onmessage;
  let written: Promise<unknown> | undefined;
  worker.onmessage = (event) => {
    hear?.(event);
    if (!(event.data instanceof ArrayBuffer) || written !== undefined) return;
    worker.terminate?.();
    written = second.db.set(0, 'later');
  };
  const [snapshot, ...found] = await Promise.all([
    first.db.snapshot(),
    ...Array.from({ length: 10 }, (_, i) => first.db.get(i)),
  ]);
  await written;
  expect(found.map((bytes) => (bytes as Uint8Array)[0])).toEqual(Array.from({ length: 10 }, (_, i) => i + 1));
  expect(await snapshot.get(0)).toEqual(value(0));
  await snapshot.close();
  expect(await first.db.get(0)).toBe('later');
});

test('a write whose Blob is still being read goes to the next leader, with the calls after it', async () => {
  const [first, second] = [await openTab(), await openTab()];
  await second.db.set('a', 1);
  const snapshot = second.db.snapshot();
  expect(await snapshot.get('a')).toBe(1);
  const blob = new Blob(['moved']);
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { arrayBuffer } = Blob.prototype;
  vi.spyOn(Blob.prototype, 'arrayBuffer').mockImplementation(async function (this: Blob) {
    await gate;
    return arrayBuffer.call(this);
  });
  const written = second.db.set('a', { blob });
  const [after, old] = [second.db.get('a'), snapshot.get('a')];
  first.worker().terminate?.();
  expect(await first.db.get('a')).toBe(1);
  release();
  expect((await written).sequence).toBe(2);
  expect(await ((await after) as { blob: Blob }).blob.text()).toBe('moved');
  expect([await old, await snapshot.get('a')]).toEqual([1, 1]);
  await snapshot.close();
});

test('a tab alone continues with a new worker when its own is ended', async () => {
  const tab = await openTab();
  await tab.db.set('a', 1);
  tab.worker().terminate?.();
  expect(await tab.db.get('a')).toBe(1);
  expect(await leads(tab)).toBe(true);
});

describe.each(['opfs', 'indexeddb'] as const)('a call under way when the leader ended, in %s', (storage) => {
  test('is done exactly once', async () => {
    const first = await openTab({ storage });
    const second = await openTab({ storage });
    for (let round = 0; round < 20; round++) {
      const [leader, other] = (await leads(first)) ? [first, second] : [second, first];
      const writes = [leader, other].flatMap(({ db }, tab) =>
        Array.from({ length: 40 }, (_, i) => db.set([round, tab, i], i)),
      );
      const updates = [leader, other].map(({ db }) => db.update('count', (n) => ((n as number) ?? 0) + 1));
      // At another moment each time: before anything was sent, while the call is under way, while it is answered.
      for (let turn = 0; turn < round % 7; turn++) await new Promise(setImmediate);
      leader.worker().terminate?.();
      const receipts = await Promise.all(writes);
      await Promise.all(updates);
      expect(new Set(receipts.map(({ sequence }) => sequence)).size).toBe(80);
    }
    expect(await first.db.get('count')).toBe(40);
    expect(await second.db.count()).toBe(20 * 80 + 1);
    // Every write took one sequence; a write that was done twice would have taken two.
    expect((await second.db.stats()).sequence).toBe(20 * 80 + 40);
  });

  test('is answered in order, and a read sees the writes called before it', async () => {
    const first = await openTab({ storage });
    const second = await openTab({ storage });
    for (let round = 0; round < 10; round++) {
      const reads: Promise<unknown>[] = [];
      for (let i = 0; i < 50; i++) {
        second.db.set('n', i).catch(() => undefined);
        reads.push(second.db.get('n'));
      }
      for (let turn = 0; turn < round % 5; turn++) await new Promise(setImmediate);
      const leader = (await leads(first)) ? first : second;
      leader.worker().terminate?.();
      expect(await Promise.all(reads)).toEqual(Array.from({ length: 50 }, (_, i) => i));
    }
  });
});

describe('after the leader ended', () => {
  const rows = (count: number, what: string): [Key, unknown][] =>
    Array.from({ length: count }, (_, i) => [i, `${what} ${i}`]);
  const filled = async (count = 5000): Promise<[Tab, Tab]> => {
    const memoryBytes = 16 << 20;
    const [first, second] = [await openTab({ memoryBytes }), await openTab({ memoryBytes })];
    await first.db.setMany(rows(count, 'value'));
    return [first, second];
  };

  test.each([false, true])('an iterator continues, reverse %s', async (reverse) => {
    const [first, second] = await filled();
    const seen: Record<string, unknown[]> = { keys: [], values: [], entries: [] };
    const iterators = {
      keys: second.db.keys({ reverse }),
      values: second.db.values({ reverse }),
      entries: second.db.entries({ reverse, limit: 4500 }),
    };
    for (let step = 0; ; step++) {
      let isDone = true;
      for (const [name, iterator] of Object.entries(iterators)) {
        const { done, value } = await iterator.next();
        if (done) continue;
        isDone = false;
        seen[name]?.push(value);
      }
      if (isDone) break;
      // Changes after they began are not visible to them, whichever tab leads.
      if (step === 100 || step === 800) {
        const leader = (await leads(first)) ? first : second;
        leader.worker().terminate?.();
        await first.db.set(step, 'changed');
        await first.db.delete(step + 1);
      }
    }
    const expected = Array.from({ length: 5000 }, (_, i) => i);
    if (reverse) expected.reverse();
    expect(seen['keys']).toEqual(expected);
    expect(seen['values']).toEqual(expected.map((i) => `value ${i}`));
    expect(seen['entries']).toEqual(expected.slice(0, 4500).map((i) => [i, `value ${i}`]));
  });

  // Each leader flushes the log that it recovers, and drops the versions that were overwritten there. The next one may miss them.
  test.each([false, true])(
    'an iterator never skips or mixes, however many leaders end, reverse %s',
    async (reverse) => {
      const [first, second] = await filled();
      const expected = Array.from({ length: 5000 }, (_, i) => i);
      if (reverse) expected.reverse();
      for (const of of ['keys', 'values'] as const) {
        const seen: unknown[] = [];
        const drained = async (): Promise<void> => {
          for await (const item of second.db[of]({ reverse })) {
            seen.push(item);
            if (seen.length % 700 !== 100) continue;
            const leader = (await leads(first)) ? first : second;
            leader.worker().terminate?.();
            const at = expected[seen.length] ?? 0;
            await first.db.set(at, 'changed');
            await first.db.delete(at + 1);
          }
        };
        const end = await drained().catch((error: unknown) => error);
        const whole = expected.map((i) => (of === 'keys' ? i : `value ${i}`));
        expect(seen).toEqual(end === undefined ? whole : whole.slice(0, seen.length));
        if (end !== undefined) expect(end).toMatchObject({ code: 'VARVE_RETRY' });
        // A second leader always continues it.
        expect(seen.length).toBeGreaterThan(800);
        await first.db.setMany(rows(5000, 'value'));
      }
    },
  );

  test('snapshots and counts continue', async () => {
    const [first, second] = await filled();
    const snapshot = second.db.snapshot();
    await first.db.clear();
    first.worker().terminate?.();
    expect(await snapshot.get(17)).toBe('value 17');
    expect(await snapshot.count()).toBe(5000);
    expect(await second.db.count()).toBe(0);
    await snapshot.close();
  });

  test('transactions continue', async () => {
    const [first, second] = await filled();
    let attempts = 0;
    await second.db.transaction(async (tx) => {
      attempts++;
      const value = await tx.get(1);
      if (attempts === 1) first.worker().terminate?.();
      tx.set('copy', value);
    });
    expect(await second.db.get('copy')).toBe('value 1');
  });

  // The page had given up its snapshot when it sent the commit. So the next leader did not know it, and refused with VARVE_RETRY.
  test('a commit under way, and a read of a snapshot that is closed behind it, are answered by the next leader', async () => {
    const [first, second] = await filled();
    const tx = await second.db.begin();
    tx.set('copy', await tx.get(1));
    const snapshot = second.db.snapshot();
    await snapshot.sequence;
    const answers = Promise.all([tx.commit(), snapshot.get(2), snapshot.close()]);
    first.worker().terminate?.();
    expect((await answers)[1]).toBe('value 2');
    expect(await second.db.get('copy')).toBe('value 1');
  });

  test('a read fails with VARVE_RETRY where a merge removed what it saw, and a transaction runs again', async () => {
    const [first, second] = await filled(20_000);
    const snapshot = second.db.snapshot();
    const iterator = second.db.entries();
    await iterator.next();
    let attempts = 0;
    await second.db.transaction(async (tx) => {
      attempts++;
      const value = await tx.get(1);
      if (attempts === 1) {
        await first.db.setMany(rows(20_000, 'newer'));
        await first.db.compact();
        first.worker().terminate?.();
      }
      tx.set('copy', value);
    });
    expect(attempts).toBe(2);
    expect(await second.db.get('copy')).toBe('newer 1');
    await expect(snapshot.get(17)).rejects.toMatchObject({ code: 'VARVE_RETRY' });
    const drained = async (): Promise<void> => {
      for await (const [key] of iterator) expect(key).toBeGreaterThan(0);
    };
    await expect(drained()).rejects.toMatchObject({ code: 'VARVE_RETRY' });
  });
});

test('a tab whose worker cannot open the store leaves it to the next one', async () => {
  const first = await openTab();
  const second = await openTab();
  const third = await openTab();
  await second.db.set('a', 1);
  vi.spyOn(EngineHost, 'open').mockRejectedValueOnce(new VarveError('VARVE_IO', 'It did not open.'));
  first.worker().terminate?.();
  // Tabs that had joined it by then go on with the next leader.
  expect(await third.db.get('a')).toBe(1);
  await expect(second.db.get('a')).rejects.toMatchObject({ code: 'VARVE_IO' });
  await third.db.set('b', 2);
  expect(await first.db.getMany(['a', 'b'])).toEqual([1, 2]);
});

test('a request that many leaders in a row did not survive fails, and no leader is sent it again', async () => {
  const frames: ArrayBuffer[] = [];
  const client = new Client(() => undefined, 'test');
  const link = {
    via: 'worker',
    post: (message: unknown) => message instanceof ArrayBuffer && frames.push(message),
  } as const;
  client.connect(link);
  const flushed = client.submit(syncOperation, undefined, undefined, 0);
  await Promise.resolve();
  const rejected = expect(flushed).rejects.toMatchObject({ code: 'VARVE_INTERNAL' });
  for (let leader = 0; leader < 20; leader++) client.connect(link);
  await rejected;
  // The first leader, and eight more.
  expect(frames).toHaveLength(9);
  client.submit(syncOperation, undefined, undefined, 0).catch(() => undefined);
  await Promise.resolve();
  const last = new DataView(frames[9] as ArrayBuffer);
  expect([24, 16].map((at) => last.getUint32(at, true))).toEqual([1, 1]);
  // It sends its id, because it may ask again.
  expect(client.id).toBeGreaterThan(0);
  expect(Number(last.getBigUint64(8, true))).toBe(client.id);
});

test('a leader whose page is hidden lets one lead whose page is seen', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const first = await openTab();
    const second = await openTab();
    first.worker().postMessage({ type: 'hidden' }, []);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    await vi.advanceTimersByTimeAsync(2000);
    await expect.poll(() => leads(second)).toBe(true);
    await Promise.all([first.db.set('a', 1), second.db.set('b', 2)]);
    expect(await first.db.getMany(['a', 'b'])).toEqual([1, 2]);
  } finally {
    vi.useRealTimers();
  }
});

// A page asked once more for the lock of its worker each time that the worker led. Two tabs between which somebody switched all day
// left hundreds of requests a day behind, until they were closed.
test('a page waits for the end of its worker once, however often that leads', async () => {
  const [first, second] = [await openTab(), await openTab()];
  await first.db.set('a', 1);
  for (let round = 0; round < 6; round++) {
    const [leader, next] = round % 2 === 0 ? [first, second] : [second, first];
    leader.worker().postMessage({ type: 'hidden' }, []);
    next.worker().postMessage({ type: 'visible' }, []);
    await expect.poll(() => leads(next)).toBe(true);
  }
  const { pending = [] } = await navigator.locks.query();
  expect(pending.filter(({ name = '' }) => name.startsWith(workerLock('')))).toHaveLength(2);
  // Its end is noticed all the same, and that of the next one.
  for (const tab of [first, second, first, second]) {
    const worker = tab.worker();
    worker.terminate?.();
    await expect.poll(() => tab.worker() === worker).toBe(false);
    expect(await tab.db.get('a')).toBe(1);
  }
});

describe.each(['opfs', 'indexeddb'] as const)(
  'a page comes back, and its store was deleted meanwhile (%s)',
  (storage) => {
    const deleted = { code: 'VARVE_CLOSED', message: expect.stringContaining('was deleted') };

    /** A page that is frozen with a write under way, and a function that brings it back. */
    async function frozen(): Promise<{ db: Tab['db']; written: Promise<unknown>; comeBack: () => void }> {
      const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
      vi.stubGlobal('document', page);
      const { db } = await openTab({ storage });
      vi.stubGlobal('document', undefined);
      await db.set('secret', 'of the user who signed out');
      const written = db.set('draft', 1);
      page.dispatchEvent(new Event('freeze'));
      return { db, written, comeBack: () => page.dispatchEvent(new Event('resume')) };
    }

    // The page made the store anew, and sent its unanswered write there.
    test('it is not made anew', async () => {
      const { db, written, comeBack } = await frozen();
      expect(await deleteStore('shared')).toBe(true);
      comeBack();
      await expect(written).rejects.toMatchObject(deleted);
      await expect(db.get('secret')).rejects.toMatchObject(deleted);
      expect(await listStores()).toEqual([]);
    });

    test('a store of the same name that another tab made gets none of its writes', async () => {
      const { db, written, comeBack } = await frozen();
      await deleteStore('shared');
      const next = await openTab({ storage });
      await next.db.set('name', 'of the next user');
      comeBack();
      await expect(written).rejects.toMatchObject(deleted);
      await expect(db.get('name')).rejects.toMatchObject(deleted);
      const keys: Key[] = [];
      for await (const key of next.db.keys()) keys.push(key);
      expect(keys).toEqual(['name']);
    });

    test('also where nobody has it open any more', async () => {
      const { db, written, comeBack } = await frozen();
      await deleteStore('shared');
      const next = await openTab({ storage });
      await next.db.set('name', 'of the next user');
      await next.db.close();
      comeBack();
      await expect(written).rejects.toMatchObject(deleted);
      await expect(db.get('name')).rejects.toMatchObject(deleted);
      const again = await openTab({ storage });
      expect(await again.db.get('draft')).toBeUndefined();
      expect(await again.db.get('name')).toBe('of the next user');
    });
  },
);

test('a link that ends before a leader has answered closes its channel', () => {
  const closed = vi.spyOn(BroadcastChannel.prototype, 'close');
  const nothing = (): void => undefined;
  const around = { store: 'shared', client: {} as Client, broker: undefined };
  const context = { ...around, connect: nothing, onNoBroker: nothing, seek: nothing };
  LeaderLink.start('nobody', {} as Parameters<typeof LeaderLink.start>[1], context, nothing, nothing).end();
  expect(closed).toHaveBeenCalledOnce();
});

test('newer code in another tab takes the store over, and the error here asks to reload', async () => {
  const tab = await openTab();
  await tab.db.set('a', 1);
  const channel = new BroadcastChannel(channelOf('shared'));
  channel.postMessage({ type: 'seek', from: 'newer', protocol: PROTOCOL + 1 });
  await expect
    .poll(() =>
      tab.db.get('a').then(
        () => 'ok',
        (error) => error.code,
      ),
    )
    .toBe('VARVE_VERSION');
  channel.close();
  // The store is closed by then, so the next tab that opens it finds it clean.
  const next = await openTab();
  expect(next.db.recovery.state).toBe('clean');
  expect(await next.db.get('a')).toBe(1);
});

test('a deletion asks the tabs to close the store, and then deletes it', async () => {
  const first = await openTab();
  const second = await openTab();
  await first.db.set('a', 1);
  await expect(deleteShared('shared', { lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  const written = second.db.set('b', 2);
  expect(await deleteShared('shared', { lockTimeout: 5000 })).toBe(true);
  expect((await written).sequence).toBe(2);
  for (const { db } of [first, second]) await expect(db.get('a')).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  const next = await openTab();
  expect(next.db.recovery.state).toBe('new');
});

test('a tab that needs an option that the leader does not have is refused', async () => {
  await openTab({ durability: 'memory' });
  await expect(openTab({ durability: 'strict' })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  await expect(openTab({ durability: 'memory', storage: 'indexeddb' })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
});

/**
 * The story: a page without workers went back into the back/forward cache while its engine looked whether the store was still there. The
 * engine led all the same, for nobody, and kept the lock of the leader: the store did not open again.
 */
test('a worker that is ended while it looks for its store does not lead', async () => {
  const { db } = await openTab();
  await db.set('a', 1);
  await db.close();
  const worker = spawnServer();
  const directory = await navigator.storage.getDirectory();
  const looking = vi.spyOn(navigator.storage, 'getDirectory').mockImplementationOnce(async () => {
    worker.terminate?.();
    return directory;
  });
  const sharing = { member: 'ended', client: 1, isVisible: true, mustExist: true };
  worker.postMessage({ type: 'open', id: 0, name: 'shared', options: { wasm: wasm.href }, sharing }, []);
  await expect.poll(() => looking.mock.calls.length, { timeout: 30_000 }).toBeGreaterThan(0);
  const next = await openTab({ lockTimeout: 0 });
  expect(await next.db.get('a')).toBe(1);
});

// The story: the clock was set back by an hour while a new leader waited for a tab that was gone. It began no flush and no merge in that hour.
test('a leader waits two seconds for the tabs of the former one, also if the clock is set back', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
  try {
    let isOver = false;
    const clients = new Clients('shared', 'leader', {} as EngineServer);
    void clients.returned(Promise.resolve([7])).then(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(1000);
    vi.setSystemTime(Date.now() - 3_600_000);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1000);
    expect(isOver).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});
