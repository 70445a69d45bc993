/** Starting a worker, for a store or for one request. */

import { type Ask, Client, noWorker, type Port } from '../client/client.ts';
import { VarveError } from '../errors.ts';
import type { WaitOptions } from '../types.ts';

/** Starts the worker that a store runs in. */
export type Spawn = (name: string) => Port;

/** The client of a new worker. Throws `VARVE_UNSUPPORTED` if it cannot be made, and the `reason` of a signal that has aborted. */
export function start(name: string, options: WaitOptions, spawn: Spawn): Client {
  options.signal?.throwIfAborted();
  try {
    return Client.of(spawn(name));
  } catch (cause) {
    throw noWorker(cause);
  }
}

/** Sends the question; on failure or abort the worker is ended. */
export async function ask<T>(client: Client, question: Ask, signal: AbortSignal | undefined): Promise<T> {
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
