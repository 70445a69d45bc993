/**
 * Waiting for a promise that a signal may abort.
 *
 * Invariant: an abort rejects the promise at once; the work is asked to stop, and its later result is dropped. No listener stays after
 * its promise is resolved or rejected.
 */

/** Resolves with the awaited value, or rejects with the signal's `reason` as soon as it aborts; then `stop` is called. */
export function untilAborted<T>(
  awaited: PromiseLike<T>,
  signal: AbortSignal | undefined,
  stop?: () => Promise<unknown>,
): Promise<T> {
  if (signal === undefined) return Promise.resolve(awaited);
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason);
      stop?.().catch(() => undefined);
    };
    const ended = (): void => signal.removeEventListener('abort', abort);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    awaited.then(resolve, reject);
    awaited.then(ended, ended);
  });
}
