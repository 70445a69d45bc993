/**
 * What a store loads when it is first called, so that pages which never call it do not load it.
 *
 * Invariant: a realm that may not import later on (a service worker) puts what it has loaded here before a store is opened.
 */

/** How each part is had. */
export const loaders = {
  transactions: (): Promise<typeof import('./transaction.ts')> => import('./transaction.ts'),
  changes: (): Promise<typeof import('../changes/changes.ts')> => import('../changes/changes.ts'),
  live: (): Promise<typeof import('../changes/live.ts')> => import('../changes/live.ts'),
  cache: (): Promise<typeof import('../changes/cache.ts')> => import('../changes/cache.ts'),
  portable: (): Promise<typeof import('../portable/portable.ts')> => import('../portable/portable.ts'),
};
