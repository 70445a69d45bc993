/** Starting a worker, for a store or for one request. */

import { Client, noWorker, type Port } from '../client/client.ts';
import type { WaitOptions } from '../types.ts';

/** Starts the worker that a store runs in. */
export type Spawn = (name: string) => Port;

/** The client of a new worker. Throws `VARVE_UNSUPPORTED` if there is none, and the `reason` of a signal that has aborted. */
export function start(name: string, options: WaitOptions, spawn: Spawn): Client {
  options.signal?.throwIfAborted();
  try {
    return Client.of(spawn(name));
  } catch (cause) {
    throw noWorker(cause);
  }
}
