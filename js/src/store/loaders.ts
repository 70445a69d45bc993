/**
 * Code that a store loads at its first use, so that pages which never use it do not load it.
 *
 * Invariant: a realm that may not import later on (a service worker) puts the loaded modules here before a store is opened.
 */

import { notLoaded } from '../errors.ts';
import { unref } from '../runtime/wait.ts';

/** When parts are loaded ahead: after the first answers, in milliseconds. */
const AHEAD_MS = 3000;

/** The loader of each part. After a failure the next call tries again. */
export const loaders = {
  transactions: (): Promise<typeof import('./transaction.ts')> => import('./transaction.ts').catch(notLoaded),
  begin: (): Promise<typeof import('./begin.ts')> => import('./begin.ts').catch(notLoaded),
  changes: (): Promise<typeof import('../changes/changes.ts')> => import('../changes/changes.ts').catch(notLoaded),
  live: (): Promise<typeof import('./live.ts')> => import('./live.ts').catch(notLoaded),
  cache: (): Promise<typeof import('../cache/read-cache.ts')> => import('../cache/read-cache.ts').catch(notLoaded),
  portable: (): Promise<typeof import('./portable.ts')> => import('./portable.ts').catch(notLoaded),
  encryption: (): Promise<typeof import('./key-change.ts')> => import('./key-change.ts').catch(notLoaded),
  requests: (): Promise<typeof import('./requests.ts')> => import('./requests.ts').catch(notLoaded),
};

/** Loads the parts of common calls when the page is idle, so that a page that goes offline later has them. */
export function loadAhead(): void {
  if (globalThis.document === undefined) return;
  const { transactions, begin, changes, live } = loaders;
  const load = () => Promise.allSettled([transactions(), begin(), changes(), live()]);
  unref(setTimeout(() => (globalThis.requestIdleCallback ?? load)(load), AHEAD_MS));
}
