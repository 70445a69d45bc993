/**
 * Waiting for an answer that a signal may make pointless.
 *
 * Invariant: an abort settles the promise at once; the side that works is told to stop, and what it then says is dropped.
 */

import { abortError } from '../errors.ts';

/** `answer`, or `VARVE_ABORTED` as soon as the signal aborts; then `stop` is called. */
export function untilAborted<T>(
  answer: Promise<T>,
  signal: AbortSignal | undefined,
  stop: () => Promise<unknown>,
): Promise<T> {
  if (signal === undefined) return answer;
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(abortError(signal));
      stop().catch(() => undefined);
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
