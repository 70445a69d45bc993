/** Leaders that hand over, fail or close while other tabs follow them or join them: no tab is left behind, and none is told of the end. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import { VarveError } from '../../js/src/errors.ts';
import { Clients } from '../../js/src/server/clients.ts';
import { EngineServer } from '../../js/src/server/engine-server.ts';
import { channelOf, clientLock, leaderLock, linkChannel, PROTOCOL } from '../../js/src/share/names.ts';
import { leads, openTab, type Tab } from './support/tabs.ts';

const turns = async (count = 20): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
};

/** Errors that nobody got. Vitest reports them, but only at the end of the file. */
const unhandled: unknown[] = [];
const note = (error: unknown): number => unhandled.push(error);

beforeEach(() => {
  process.on('unhandledRejection', note);
});

afterEach(async () => {
  await turns();
  process.off('unhandledRejection', note);
  expect(unhandled.splice(0)).toEqual([]);
});

describe.each(['opfs', 'indexeddb'] as const)('in %s', (storage) => {
  // A hidden leader yielded to a tab that had become visible. That tab was closed before it led. The next in line, which was not the
  // chosen one, stepped back, and the former leader led again. The others took that for the leadership that they had joined, and
  // waited at a port that was closed: every call stalled, and live queries kept an old value without an error.
  test('a leader that leads twice in a row keeps its followers', async () => {
    const first = await openTab({ storage });
    // The second tab looks at the lock that it was granted when the first one stands in line again.
    const request = navigator.locks.request.bind(navigator.locks) as (...args: unknown[]) => Promise<unknown>;
    vi.spyOn(navigator.locks, 'request').mockImplementation((async (name, options, callback) => {
      const later = async (lock: Lock): Promise<unknown> => {
        await turns();
        return callback(lock);
      };
      return request(name, options, name === leaderLock('shared') ? later : callback);
    }) as LockManager['request']);
    const second = await openTab({ storage });
    await first.db.set('a', 1);
    const live = second.db.live('a');
    live.subscribe(() => undefined);
    await expect.poll(() => live.value).toBe(1);
    for (const { worker } of [first, second]) worker().postMessage({ type: 'hidden' }, []);
    await turns();
    const words: string[] = [];
    const channel = new BroadcastChannel(channelOf('shared'));
    channel.onmessage = ({ data }) => words.push((data as { type: string }).type);
    channel.postMessage({ type: 'visible', from: 'gone', protocol: PROTOCOL });
    await expect.poll(() => words.slice(0, 2)).toEqual(['yield', 'lead']);
    channel.close();
    await first.db.set('a', 2);
    expect(await leads(first)).toBe(true);
    await expect.poll(() => live.value).toBe(2);
    expect(await second.db.get('a')).toBe(2);
  });
});

// A link that the leader had once welcomed was never left again: a tab that missed the next leader's announcement stalled for ever.
test('a tab that missed the announcement of a leader looks for it when its calls stall', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const tabs: [Tab, Tab, Tab] = [await openTab(), await openTab(), await openTab()];
    const [first, second, third] = tabs;
    await third.db.set('a', 1);
    const worker = third.worker();
    const hear = worker.onmessage;
    let isDeaf = true;
    worker.onmessage = (event) => {
      if (!isDeaf || (event.data as { type?: string }).type !== 'leader') hear?.(event);
    };
    await first.db.close();
    expect(await leads(second)).toBe(true);
    const stalled = expect(third.db.get('a')).rejects.toMatchObject({ code: 'VARVE_LEADER_STALLED' });
    await turns();
    isDeaf = false;
    await vi.advanceTimersByTimeAsync(7000);
    await stalled;
    await turns();
    const found = third.db.get('a');
    // Without a leader, this call would stall, too.
    await vi.advanceTimersByTimeAsync(7000);
    expect(await found).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

describe('when the engine of the leader fails', () => {
  /** The next write of the storage fails, and not for lack of room. */
  const fail = (): void => {
    vi.spyOn(IDBObjectStore.prototype, 'add').mockImplementationOnce(() => {
      throw new DOMException('disk', 'DataError');
    });
  };

  // The next tab led, and calls worked there. But its live queries had ended with VARVE_IO at their old values, and so had `changes()`.
  test('live queries and changes of the other tabs go on; those of its own tab end with the error', async () => {
    const storage = 'indexeddb';
    const [first, second] = [await openTab({ storage }), await openTab({ storage })];
    await first.db.set('k', 1);
    const failures: { first: unknown[]; second: unknown[] } = { first: [], second: [] };
    const follow = ({ db }: Tab, ended: unknown[]) => {
      const lives = [db.live('k'), db.live({ as: 'values' }), db.live(async (view) => view.get('k'))];
      for (const live of lives) {
        live.subscribe(
          () => undefined,
          (error) => ended.push(error),
        );
      }
      const changed: unknown[] = [];
      const drained = async (): Promise<void> => {
        for await (const change of db.changes()) changed.push(change);
      };
      drained().catch((error: unknown) => ended.push(error));
      return { changed, values: () => lives.map(({ value }) => value) };
    };
    const [own, other] = [follow(first, failures.first), follow(second, failures.second)];
    for (const { values } of [own, other]) await expect.poll(values).toEqual([1, [1], 1]);
    fail();
    await expect(first.db.set('k', 5)).rejects.toMatchObject({ code: 'VARVE_IO' });
    // A call that reaches the old leader still is rejected.
    await vi.waitFor(() => second.db.set('k', 6));
    await expect.poll(other.values).toEqual([6, [6], 6]);
    await expect.poll(() => other.changed.at(-1)).toMatchObject({ type: 'set', key: 'k', value: 6 });
    expect(failures.second).toEqual([]);
    expect(failures.first).toEqual(Array.from({ length: 4 }, () => expect.objectContaining({ code: 'VARVE_IO' })));
  });

  test('a query that is under way runs again with the next leader, and its own errors are reported', async () => {
    const storage = 'indexeddb';
    const [first, second] = [await openTab({ storage }), await openTab({ storage })];
    await first.db.set('k', 1);
    let runs = 0;
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const failures: unknown[] = [];
    const live = second.db.live(async (view) => {
      runs++;
      if (runs === 1) await gate;
      const value = await view.get('k');
      if (value === 7) throw new Error('own');
      return value;
    });
    live.subscribe(
      () => undefined,
      (error) => failures.push(error),
    );
    await expect.poll(() => runs).toBe(1);
    const { receive } = EngineServer.prototype;
    let isSound = false;
    vi.spyOn(EngineServer.prototype, 'receive').mockImplementation(function (this: EngineServer, data, from) {
      if (isSound || !(data instanceof ArrayBuffer)) return receive.call(this, data, from);
      isSound = true;
      this.onFailure(new VarveError('VARVE_IO', 'The read failed.'));
    });
    release();
    await expect.poll(() => live.value).toBe(1);
    expect([isSound, runs]).toEqual([true, 2]);
    expect(failures).toEqual([]);
    await vi.waitFor(() => second.db.set('k', 7));
    await expect.poll(() => failures).toEqual([expect.objectContaining({ message: 'own' })]);
  });
});

describe('a join', () => {
  /** Holds the verification of keys until it is released; `asked` counts the tabs that wait for it. */
  const holdKeys = () => {
    const held = { asked: 0, release: (): void => undefined };
    const gate = new Promise<void>((resolve) => {
      held.release = resolve;
    });
    vi.spyOn(EngineHost.prototype, 'verifyKey').mockImplementation(() => {
      held.asked++;
      return gate;
    });
    return held;
  };

  // The key of an encrypted store is verified beside the queue. If the leader had closed the store by then, the tab that joined got
  // VARVE_CLOSED, as if it were for good. With its channel closed, too, that answer was an unhandled rejection.
  test.each(['while the store closes', 'when the channel is closed, too'])(
    'that is verified %s goes to the next leader',
    async (when) => {
      const first = await openTab();
      await first.db.set('a', 1);
      const held = holdKeys();
      const opening = openTab();
      opening.catch(() => undefined);
      await expect.poll(() => held.asked).toBe(1);
      const close = EngineHost.prototype.close;
      vi.spyOn(EngineHost.prototype, 'close').mockImplementation(async function (this: EngineHost) {
        if (when === 'while the store closes') {
          held.release();
          await turns();
        }
        return close.call(this);
      });
      await first.db.close();
      held.release();
      const second = await opening;
      expect(await second.db.get('a')).toBe(1);
      expect(await leads(second)).toBe(true);
    },
  );

  test('whose key is refused while the store closes is not told so', async () => {
    const first = await openTab();
    await first.db.set('a', 1);
    const held = holdKeys();
    let refuse = (): void => undefined;
    vi.mocked(EngineHost.prototype.verifyKey).mockImplementationOnce(() => {
      held.asked++;
      return new Promise((_, reject) => {
        refuse = () => reject(new VarveError('VARVE_KEY', 'The keys are erased.'));
      });
    });
    const opening = openTab();
    opening.catch(() => undefined);
    await expect.poll(() => held.asked).toBe(1);
    await first.db.close();
    refuse();
    held.release();
    expect(await (await opening).db.get('a')).toBe(1);
  });

  // A busy leader had a `close` in its queue and a join behind it. The join was answered from a closed store.
  test('behind a close in the queue of a busy leader goes to the next leader', async () => {
    const first = await openTab();
    await first.db.set('a', 1);
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { statsNow } = EngineHost.prototype;
    vi.spyOn(EngineHost.prototype, 'statsNow').mockImplementationOnce(async function (this: EngineHost) {
      await gate;
      return statsNow.call(this);
    });
    const isJoin = (data: unknown): boolean => (data as { type?: string }).type === 'join';
    const { postMessage } = BroadcastChannel.prototype;
    let join: (() => void) | undefined;
    vi.spyOn(BroadcastChannel.prototype, 'postMessage').mockImplementation(function (this: BroadcastChannel, data) {
      const post = (): void => postMessage.call(this, data);
      if (join === undefined && isJoin(data)) join = post;
      else post();
    });
    const received = vi.spyOn(EngineServer.prototype, 'receive');
    const opening = openTab();
    opening.catch(() => undefined);
    await expect.poll(() => join).toBeDefined();
    const busy = first.db.stats();
    const closed = first.db.close();
    await turns();
    join?.();
    await expect.poll(() => received.mock.calls.filter(([data]) => isJoin(data)).length).toBe(1);
    release();
    await busy;
    await closed;
    expect(await (await opening).db.get('a')).toBe(1);
  });

  // The channel of the connection before stayed open as long as the leader led.
  test('of a client that has joined before closes the connection from before', async () => {
    void navigator.locks.request(clientLock('shared', 7), {}, () => new Promise(() => undefined));
    const server = { receive: vi.fn(), replace: vi.fn() } as unknown as EngineServer;
    const clients = new Clients('shared', 'leader', server);
    const opened: BroadcastChannel[] = [];
    const closed = vi.spyOn(BroadcastChannel.prototype, 'close');
    for (const attempt of [1, 2]) {
      const channel = new BroadcastChannel(linkChannel('shared', `link ${attempt}`));
      opened.push(channel);
      const welcomed = new Promise((resolve) => {
        channel.onmessage = resolve;
      });
      clients.reach(`link ${attempt}`);
      await welcomed;
      channel.postMessage({ type: 'join', id: 0, client: 7, protocol: PROTOCOL, attempt });
      await expect.poll(() => vi.mocked(server.receive).mock.calls.length).toBe(attempt);
    }
    expect(closed).toHaveBeenCalledTimes(1);
    clients.close();
    expect(closed).toHaveBeenCalledTimes(2);
    for (const channel of opened) channel.close();
  });
});

describe('the broker', () => {
  /** A page or a worker that the broker knows: its end of the line, and the ports that it was given. */
  const lineOf = (scope: { onconnect?: (event: { ports: MessagePort[] }) => void }) => {
    const { port1, port2 } = new MessageChannel();
    const given: MessagePort[] = [];
    port1.onmessage = ({ ports }) => given.push(...(ports as MessagePort[]));
    scope.onconnect?.({ ports: [port2] });
    return { port: port1, given };
  };

  // It kept the line of every worker that had led, and gave ports to leaders that were gone.
  test('forgets a leader whose line is closed', async () => {
    vi.resetModules();
    await vi.importActual('../../js/src/share/broker-worker.ts');
    const scope = globalThis as { onconnect?: (event: { ports: MessagePort[] }) => void };
    try {
      const [former, page, next] = [lineOf(scope), lineOf(scope), lineOf(scope)];
      former.port.postMessage({ type: 'lead', member: 'one' });
      page.port.postMessage({ type: 'connect', member: 'one' }, [new MessageChannel().port1]);
      await expect.poll(() => former.given.length).toBe(1);
      former.port.close();
      await turns();
      page.port.postMessage({ type: 'connect', member: 'one' }, [new MessageChannel().port1]);
      await turns();
      next.port.postMessage({ type: 'lead', member: 'one' });
      await expect.poll(() => next.given.length).toBe(1);
      for (const { port } of [page, next]) port.close();
    } finally {
      delete scope.onconnect;
    }
  });
});
