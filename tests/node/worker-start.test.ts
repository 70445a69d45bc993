/** A worker that does not start once the store has been open: there is no network for the moment. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Port } from '../../js/src/client/client.ts';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import { VarveError } from '../../js/src/errors.ts';
import { spawnServer } from './support/engine.ts';
import { FakeWindow } from './support/fake-window.ts';
import { leads, openTab, tabs } from './support/tabs.ts';

describe('a worker that does not start', () => {
  const page = new FakeWindow();
  const document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  const show = (type: string): void => {
    if (type.startsWith('page')) document.visibilityState = type === 'pagehide' ? 'hidden' : 'visible';
    page.dispatchEvent(Object.assign(new Event(type), { persisted: true }));
  };
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 30; turn++) await new Promise(setImmediate);
  };
  const pass = async (ms: number): Promise<void> => {
    await turns();
    await vi.advanceTimersByTimeAsync(ms);
    await turns();
  };
  let isOnline = true;
  let spawned = 0;
  /** How a worker fails whose script cannot be fetched. */
  let fails = (): Port => spawnServer();
  const failsLater = (): Port => {
    const port: Port = { onmessage: null, onerror: null, postMessage: () => undefined };
    setImmediate(() => port.onerror?.({} as ErrorEvent));
    return port;
  };
  const spawn = (): Port => {
    spawned++;
    return isOnline ? spawnServer() : fails();
  };

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    vi.stubGlobal('addEventListener', page.addEventListener);
    vi.stubGlobal('document', document);
    [isOnline, spawned, fails] = [true, 0, failsLater];
  });

  afterEach(async () => {
    isOnline = true;
    show('online');
    for (const { db } of tabs.splice(0)) await db.close().catch(() => undefined);
    vi.useRealTimers();
  });

  test('fails the first opening at once', async () => {
    isOnline = false;
    await expect(openTab({}, spawn)).rejects.toMatchObject({ code: 'VARVE_UNAVAILABLE' });
    await pass(60_000);
    expect(spawned).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each<[string, () => Port]>([
    ['whose script cannot be fetched', failsLater],
    [
      'that the browser refuses',
      () => {
        throw new TypeError('Not now.');
      },
    ],
  ])('after the page thawed is started again: one %s', async (_, failing) => {
    fails = failing;
    const { db } = await openTab({}, spawn);
    await db.set('a', 1);
    isOnline = false;
    show('pagehide');
    show('pageshow');
    const found = db.get('a');
    const counts: number[] = [];
    for (const ms of [0, 999, 1, 1999, 1]) {
      await pass(ms);
      counts.push(spawned);
    }
    expect(counts).toEqual([2, 2, 3, 3, 4]);
    isOnline = true;
    show('online');
    expect(await found).toBe(1);
    expect(spawned).toBe(5);
    // It waits no more, and the next time it begins with a short pause again.
    await pass(60_000);
    show('online');
    await turns();
    expect(spawned).toBe(5);
    isOnline = false;
    show('pagehide');
    show('pageshow');
    await pass(1000);
    expect(spawned).toBe(7);
  });

  test('after the browser ended the last one is started again, and calls that wait too long are rejected', async () => {
    const { db, worker } = await openTab({}, spawn);
    await db.set('a', 1);
    isOnline = false;
    worker().terminate?.();
    const stalled = expect(db.get('b')).rejects.toMatchObject({
      code: 'VARVE_LEADER_STALLED',
      cause: expect.objectContaining({ code: 'VARVE_UNAVAILABLE' }),
    });
    await pass(7000);
    await stalled;
    // At 30 s at most.
    await pass(600_000);
    const before = spawned;
    await pass(90_000);
    expect(spawned).toBe(before + 3);
    isOnline = true;
    await pass(30_000);
    expect(await db.get('a')).toBe(1);
  });

  test('in a worker without a document is started again as soon as the network is back', async () => {
    vi.stubGlobal('document', undefined);
    const { db, worker } = await openTab({}, spawn);
    await db.set('a', 1);
    isOnline = false;
    worker().terminate?.();
    await pass(600_000);
    const before = spawned;
    isOnline = true;
    show('online');
    await pass(0);
    expect(spawned).toBe(before + 1);
    expect(await db.get('a')).toBe(1);
  });

  test('because its engine cannot be fetched is started again', async () => {
    const { db, worker } = await openTab({}, spawn);
    await db.set('a', 1);
    vi.spyOn(EngineHost, 'open').mockRejectedValueOnce(new VarveError('VARVE_UNAVAILABLE', 'It was not fetched.'));
    worker().terminate?.();
    const found = db.get('a');
    await pass(2000);
    expect(await found).toBe(1);
  });

  test('leaves the link to another tab that leads alone', async () => {
    const first = await openTab();
    const second = await openTab({}, spawn);
    await first.db.set('a', 1);
    isOnline = false;
    second.worker().terminate?.();
    await pass(2000);
    expect(spawned).toBeGreaterThan(2);
    expect(await second.db.get('a')).toBe(1);
    await second.db.set('b', 2);
    isOnline = true;
    await pass(4000);
    first.worker().terminate?.();
    expect(await second.db.getMany(['a', 'b'])).toEqual([1, 2]);
    expect(await leads(second)).toBe(true);
  });

  test('is not started in a frozen page, nor after close', async () => {
    const { db } = await openTab({}, spawn);
    isOnline = false;
    show('pagehide');
    show('pageshow');
    await turns();
    expect(spawned).toBe(2);
    show('pagehide');
    show('online');
    await pass(60_000);
    expect(spawned).toBe(2);
    show('pageshow');
    await turns();
    expect(spawned).toBe(3);
    // As every call, it waits for a leader: there may be writes before it.
    const closed = expect(db.close()).rejects.toMatchObject({ code: 'VARVE_LEADER_STALLED' });
    await pass(7000);
    await closed;
    const before = spawned;
    show('online');
    await pass(60_000);
    expect(spawned).toBe(before);
    expect(vi.getTimerCount()).toBe(0);
  });
});
