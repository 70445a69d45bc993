/**
 * An engine in the realm of its caller: where stores are kept by an adapter, and where no worker can be had.
 *
 * Invariant: to its client it is a worker like any other. What is posted arrives in a later turn, in order, so that
 * operations of one turn still share a frame and timers run between turns; nothing is copied, because a frame that was
 * posted is not looked at again by whoever posted it.
 */

import type { Request, Response } from '../protocol/messages.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import type { Port } from './client.ts';
import { EngineServer } from './engine-server.ts';
import { afterTurn } from './turn.ts';

/** Makes an engine here that keeps its store with `adapter`, or by the options of `open` without one. */
export function engineHere(adapter: StorageAdapter | undefined): Port {
  const port: Port = {
    onmessage: null,
    postMessage: (message) => afterTurn(() => server.receive(message as Request | ArrayBuffer)),
  };
  const answer = (data: Response | ArrayBuffer): void =>
    queueMicrotask(() => port.onmessage?.({ data } as MessageEvent<Response | ArrayBuffer>));
  const server = new EngineServer(answer, undefined, adapter);
  return port;
}
