/** Stores that tabs share: several pages of one realm, each with a worker of its own, over the same files and locks. */

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import * as membership from '../../js/src/share/membership.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key, OpenOptions } from '../../js/src/types.ts';
import type { Port } from '../../js/src/worker/client.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { FakeFileHandle, FakeLocks, FakeOpfs } from './support/fake-opfs.ts';

interface Tab {
  readonly db: Store<Key, unknown>;
  /** Its worker, the last one. */
  readonly worker: () => Port;
}

const tabs: Tab[] = [];
let opfs: FakeOpfs;

beforeEach(() => {
  opfs = new FakeOpfs();
  vi.stubGlobal('FileSystemFileHandle', FakeFileHandle);
  vi.stubGlobal('navigator', { storage: opfs.storage, locks: new FakeLocks() });
});

afterEach(async () => {
  for (const { db } of tabs.splice(0).reverse()) await db.close();
  vi.unstubAllGlobals();
});

async function openTab(options: OpenOptions<Key, unknown> = {}): Promise<Tab> {
  let worker: Port | undefined;
  const spawn = (): Port => {
    worker = spawnServer();
    return worker;
  };
  const load = async (): Promise<typeof membership> => membership;
  const db = await openStore<Key, unknown>('shared', { wasm, memory: 1024 * 1024, ...options }, spawn, load);
  const tab = { db, worker: () => worker as Port };
  tabs.push(tab);
  return tab;
}

const leads = async ({ db }: Tab): Promise<boolean> => (await db.stats()).sharing?.leads === true;

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

test('when the worker of the leader is ended, both tabs go on', async () => {
  const first = await openTab();
  const second = await openTab();
  await first.db.set('a', 1);
  first.worker().terminate?.();
  await Promise.all([first.db.set('b', 2), second.db.set('c', 3)]);
  expect(await first.db.getMany(['a', 'b', 'c'])).toEqual([1, 2, 3]);
  expect(await leads(second)).toBe(true);
  expect(await leads(first)).toBe(false);
});

test('a tab alone goes on with a new worker when its own is ended', async () => {
  const tab = await openTab();
  await tab.db.set('a', 1);
  tab.worker().terminate?.();
  expect(await tab.db.get('a')).toBe(1);
  expect(await leads(tab)).toBe(true);
});
