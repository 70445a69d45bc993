/** Pages of one realm that share a store, each with a worker of its own, over the same files and locks. */

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, vi } from 'vitest';
import type { Port } from '../../../js/src/client/client.ts';
import { openStore } from '../../../js/src/store/open.ts';
import type { OpenOptions } from '../../../js/src/store/open-options.ts';
import type { Store } from '../../../js/src/store/store.ts';
import type { Key } from '../../../js/src/types.ts';
import { spawnServer, wasm } from './engine.ts';
import { stubOpfs } from './fake-opfs.ts';

/** A page. */
export interface Tab {
  readonly db: Store<Key, unknown>;
  /** Its worker: the most recent one. */
  readonly worker: () => Port;
}

/** The pages of this test; they are closed at its end. */
export const tabs: Tab[] = [];

beforeEach(() => {
  stubOpfs();
  vi.stubGlobal('indexedDB', new IDBFactory());
});

afterEach(async () => {
  for (const { db } of tabs.splice(0).reverse()) await db.close().catch(() => undefined);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Opens the store in one more page. */
export async function openTab(
  options: OpenOptions<Key, unknown> = {},
  spawnNext: () => Port = spawnServer,
): Promise<Tab> {
  let worker: Port | undefined;
  const spawn = (): Port => {
    worker = spawnNext();
    return worker;
  };
  const db = await openStore<Key, unknown>('shared', { wasm, memoryBytes: 1024 * 1024, ...options }, spawn, {});
  const tab = { db, worker: () => worker as Port };
  tabs.push(tab);
  return tab;
}

/** Whether the worker of a page leads. */
export const leads = async ({ db }: Tab): Promise<boolean> => (await db.stats()).sharing?.leads === true;
