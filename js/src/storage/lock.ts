/**
 * The lock that makes a store belong to one worker at a time: a Web Lock named after the store.
 *
 * Invariant: held from before the first file is opened until after the last one is closed. It is never stolen: a worker
 * that lost its lock could still write through its handles. Where the browser has no locks, the exclusivity of the
 * file handles is the fence.
 */

import { VarveError } from '../errors.ts';
import type { LockOptions } from './adapter.ts';

/** The name of the lock of a store that is open: see `share/names.ts`. */
export const openLock = (store: string): string => `varve-open:${store}`;

/** A held lock. */
export interface StoreLock {
  /**
   * Releases the lock for the next in line; resolves when a new request would get it at once. In Firefox that is a little later: a
   * request right after a release, without waiting for it, finds the lock still taken.
   */
  release(): Promise<void>;
}

/**
 * Takes the lock of a store.
 * @throws `VARVE_LOCKED` when another holder keeps it for longer than `lockTimeout`, the signal's `reason` when it aborts.
 */
export function acquireLock(name: string, { lockTimeout, signal }: LockOptions): Promise<StoreLock> {
  const locks = globalThis.navigator?.locks;
  if (locks === undefined) return Promise.resolve({ release: async () => undefined });
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const waiting = new AbortController();
    const giveUp = (): void => waiting.abort();
    const timer = lockTimeout > 0 ? setTimeout(giveUp, lockTimeout) : undefined;
    signal?.addEventListener('abort', giveUp, { once: true });
    const ended = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    };
    const granted = (lock: Lock | null): Promise<void> | undefined => {
      ended();
      if (lock === null) {
        reject(locked(name));
        return undefined;
      }
      return new Promise((end) => {
        const release = (): Promise<void> => {
          end();
          return released;
        };
        resolve({ release });
      });
    };
    const released = locks
      .request(openLock(name), lockTimeout > 0 ? { signal: waiting.signal } : { ifAvailable: true }, granted)
      .then(() => undefined)
      .catch((cause: unknown) => {
        ended();
        if (signal?.aborted) reject(signal.reason);
        else if (waiting.signal.aborted) reject(locked(name));
        else reject(new VarveError('VARVE_UNSUPPORTED', 'The browser refused the lock of the store.', { cause }));
      });
  });
}

function locked(name: string): VarveError {
  return new VarveError(
    'VARVE_LOCKED',
    `Another tab or worker has the store "${name}" open. Close it there, or wait longer.`,
  );
}
