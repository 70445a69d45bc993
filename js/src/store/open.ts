/**
 * Opening stores through a worker.
 *
 * Invariant: a worker that is started here is also ended here if the store does not open; a store that opened owns its worker
 * and ends it in `close()`.
 */

import type { Client } from '../client/client.ts';
import { withKeyOfNow } from '../options.ts';
import type { EngineOptions, OpenReport } from '../protocol/messages.ts';
import { Membership, type MembershipOptions } from '../share/membership.ts';
import { canShare } from '../share/names.ts';
import { watchPage } from '../share/page.ts';
import { isAdapter, MEMORY_BYTES_DEFAULT } from '../storage/adapter.ts';
import { loadAhead, loaders } from './loaders.ts';
import type { OpenOptions } from './open-options.ts';
import { checkOwn, OPEN, resolveOptions } from './options.ts';
import { ask, type Spawn, start } from './start.ts';
import { Store } from './store.ts';

/** The cache of a tab in proportion to `memoryBytes`. */
const CACHE_SHARE = 1 / 8;

type Resolved = ReturnType<typeof resolveOptions>;

/** How a store is shared with other tabs. */
export type Sharing = Pick<MembershipOptions, 'compile'>;

/** Opens the store; with `sharing` together with the other tabs that have it open, where tabs can share stores. */
export async function openStore<K, V>(
  name: string,
  options: OpenOptions<K, V>,
  spawn: Spawn,
  sharing?: Sharing,
): Promise<Store<K, V>> {
  const engine = resolveOptions(name, options, OPEN);
  const { version, upgrade, onVersionChange, cache, memoryBytes = MEMORY_BYTES_DEFAULT } = options;
  const { storage, signal, durability, keys, values } = options;
  // A copy: the caller may change its options while the store opens.
  const given = { storage, signal, durability, keys, values };
  checkOwn(options);
  const { encryption } = withKeyOfNow(options);
  if (encryption !== undefined) engine.key = await (await loaders.encryption()).userKeyOf(encryption);
  const joining = sharing !== undefined && storage !== 'memory' && !isAdapter(storage) && canShare();
  const store = await (joining ? join(name, given, engine, spawn, sharing) : openAlone(name, given, engine, spawn));
  try {
    if (version !== undefined) await store.upgradeTo(version, upgrade, signal);
    if (version !== undefined && onVersionChange !== undefined) {
      const changed = (newVersion: number): void => onVersionChange({ oldVersion: version, newVersion });
      // In a separate microtask: an error that the callback throws must not reach the connection.
      store.client.onNewer((newVersion) => queueMicrotask(() => changed(newVersion)));
    }
    if (cache !== false) store.cacheReads(memoryBytes * CACHE_SHARE);
    loadAhead();
    return store;
  } catch (error) {
    // The reason why it did not open matters more than an error of `close`.
    await store.close().catch(() => undefined);
    throw error;
  }
}

/** Opens a store with the other tabs. Where the browser lets the page store nothing, a store without a chosen storage is in memory. */
async function join<K, V>(
  name: string,
  options: OpenOptions<K, V>,
  engine: Resolved,
  spawn: Spawn,
  sharing: Sharing,
): Promise<Store<K, V>> {
  const { signal } = options;
  signal?.throwIfAborted();
  const { lockTimeout } = engine;
  try {
    const joining = { ...sharing, name, engine, lockTimeout, signal, spawn: () => spawn(name) };
    const { client, report, onKeys } = await Membership.join(joining);
    return new Store(name, client, report, options, { engine, onKeys });
  } catch (error) {
    if (options.storage !== undefined || !(await isForbidden())) throw error;
    return openAlone(name, options, { ...engine, storage: 'memory' }, spawn, (error as Error).message);
  }
}

/** Opens a store that no other tab sees. */
async function openAlone<K, V>(
  name: string,
  options: OpenOptions<K, V>,
  engine: EngineOptions,
  spawn: Spawn,
  reason?: string,
): Promise<Store<K, V>> {
  const client = start(name, options, spawn);
  const opened = await ask<OpenReport>(client, { type: 'open', name, options: engine }, options.signal);
  const report = reason === undefined ? opened : { ...opened, storage: { ...opened.storage, reason } };
  return new Store(name, client, report, options, { engine, onClose: watchClient(client) });
}

/** Whether the browser lets this page store nothing: its settings block site data, or the page is in a sandboxed frame. */
function isForbidden(): Promise<boolean> {
  return navigator.locks.query().then(
    () => false,
    (error: Error) => error.name === 'SecurityError',
  );
}

/** Makes the engine flush when the page is hidden or left: after that it may not run again. Returns a function that ends this. */
function watchClient(client: Client): () => void {
  const nothing = (): void => undefined;
  const see = (isVisible: boolean): void => {
    if (!isVisible) client.hide();
  };
  return watchPage({ see, leave: () => client.linger(), suspend: nothing, resume: nothing, retry: nothing });
}
