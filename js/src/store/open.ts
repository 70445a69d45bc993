/**
 * Opening, listing and deleting stores through a worker.
 *
 * Invariant: a worker that is started here is also ended here if the store does not open; a store that opened owns its worker
 * and ends it in `close()`.
 */

import type { Ask, Client } from '../client/client.ts';
import { VarveError } from '../errors.ts';
import type { OpenReport } from '../protocol/messages.ts';
import { Membership, type MembershipOptions } from '../share/membership.ts';
import { canShare } from '../share/names.ts';
import { isAdapter } from '../storage/adapter.ts';
import type { WaitOptions } from '../types.ts';
import type { OpenOptions } from './open-options.ts';
import { checkCache, checkName, lockTimeoutOf, OPEN, resolveOptions } from './options.ts';
import { type Spawn, start } from './start.ts';
import { Store } from './store.ts';

const MEMORY_BYTES_DEFAULT = 32 * 2 ** 20;
/** The cache of a tab in proportion to `memoryBytes`. */
const CACHE_SHARE = 1 / 8;

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
  const { version, upgrade, signal, cache, memoryBytes = MEMORY_BYTES_DEFAULT } = options;
  checkCache(cache);
  let store: Store<K, V>;
  if (sharing !== undefined && options.storage !== 'memory' && !isAdapter(options.storage) && canShare()) {
    signal?.throwIfAborted();
    const { lockTimeout } = engine;
    const joining = { ...sharing, name, engine, lockTimeout, signal, spawn: () => spawn(name) };
    const { client, report } = await Membership.join(joining);
    store = new Store(name, client, report, options, () => undefined);
  } else {
    const client = start(name, options, spawn);
    const report = await ask<OpenReport>(client, { type: 'open', name, options: engine }, signal);
    store = new Store(name, client, report, options, watchPage(client));
  }
  try {
    if (version !== undefined) await store.upgradeTo(version, upgrade, signal);
    if (cache !== false) store.cacheReads(memoryBytes * CACHE_SHARE);
    return store;
  } catch (error) {
    // The reason why it did not open matters more than an error of `close`.
    await store.close().catch(() => undefined);
    throw error;
  }
}

/** Names of the stores of this origin. */
export function listNames(options: WaitOptions, spawn: Spawn): Promise<string[]> {
  return askOnce<string[]>('varve', { type: 'list' }, options, spawn);
}

/** Deletes a store; resolves with false if it did not exist. */
export async function deleteNamed(
  name: string,
  options: WaitOptions & { lockTimeout?: number | undefined },
  spawn: Spawn,
): Promise<boolean> {
  checkName(name);
  const lockTimeout = lockTimeoutOf(options);
  return askOnce<boolean>(name, { type: 'delete', name, lockTimeout }, options, spawn);
}

async function askOnce<T>(name: string, question: Ask, options: WaitOptions, spawn: Spawn): Promise<T> {
  const client = start(name, options, spawn);
  const answer = await ask<T>(client, question, options.signal);
  client.fail(new VarveError('VARVE_CLOSED', 'The worker has done its work.'));
  return answer;
}

/** Sends the question; on failure or abort the worker is ended. */
async function ask<T>(client: Client, question: Ask, signal: AbortSignal | undefined): Promise<T> {
  const abort = (): void => {
    if (signal !== undefined) client.fail(signal.reason);
  };
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return (await client.ask(question)) as T;
  } catch (error) {
    client.fail(new VarveError('VARVE_CLOSED', 'The store did not open.'));
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/** Makes the engine flush when the page is hidden or goes away: after that it may not run again. Returns a function that ends this. */
function watchPage(client: Client): () => void {
  const target: Partial<Pick<Window, 'addEventListener' | 'removeEventListener' | 'document'>> = globalThis;
  const { document } = target;
  const hide = (): void => client.hide();
  const change = (): void => {
    if (document?.visibilityState === 'hidden') client.hide();
  };
  target.addEventListener?.('pagehide', hide);
  document?.addEventListener('visibilitychange', change);
  return () => {
    target.removeEventListener?.('pagehide', hide);
    document?.removeEventListener('visibilitychange', change);
  };
}
