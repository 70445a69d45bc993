/**
 * Waiting for what a signal may make pointless.
 *
 * Invariant: an abort settles the promise at once; whoever works is told to stop, and what then comes is dropped.
 */

import { abortError } from './errors.ts';

/** What is awaited, or `VARVE_ABORTED` as soon as the signal aborts; then `stop` is called. */
export function untilAborted<T>(
  awaited: PromiseLike<T>,
  signal: AbortSignal | undefined,
  stop?: () => Promise<unknown>,
): Promise<T> {
  if (signal === undefined) return Promise.resolve(awaited);
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(abortError(signal));
      stop?.().catch(() => undefined);
    };
    const settled = (): void => signal.removeEventListener('abort', abort);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    awaited.then(resolve, reject);
    awaited.then(settled, settled);
  });
}
