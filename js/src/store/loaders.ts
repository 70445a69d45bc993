/**
 * Code that a store loads at its first use, so that pages which never use it do not load it.
 *
 * Invariant: a realm that may not import later on (a service worker) puts the loaded modules here before a store is opened.
 */

/** The loader of each part. */
export const loaders = {
  transactions: (): Promise<typeof import('./transaction.ts')> => import('./transaction.ts'),
  begin: (): Promise<typeof import('./begin.ts')> => import('./begin.ts'),
  changes: (): Promise<typeof import('../changes/changes.ts')> => import('../changes/changes.ts'),
  live: (): Promise<typeof import('./live.ts')> => import('./live.ts'),
  cache: (): Promise<typeof import('../cache/read-cache.ts')> => import('../cache/read-cache.ts'),
  portable: (): Promise<typeof import('./portable.ts')> => import('./portable.ts'),
  encryption: (): Promise<typeof import('./key-change.ts')> => import('./key-change.ts'),
  requests: (): Promise<typeof import('./requests.ts')> => import('./requests.ts'),
};
