/**
 * An engine in the realm of its caller. It is used when an adapter keeps the store, and when no worker is available.
 *
 * Invariant: for its client it behaves like a worker: a posted message arrives later, in order, so that operations of one
 * turn still share a frame. Nothing is copied, because the sender does not change a frame after posting it.
 *
 * A message usually arrives at the end of the turn it was posted in, which costs nothing. But once in `TURN_MS` it waits for
 * the next turn, so that a caller that awaits one operation after another blocks neither timers nor the page.
 */

import type { Port } from '../client/client.ts';
import type { Request, Response } from '../protocol/messages.ts';
import { afterTurn, soon } from '../runtime/turn.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import { codeHere } from './later-code.ts';
import { Member } from './member.ts';

/** How long a caller that awaits one operation after another may prolong a turn. */
const TURN_MS = 4;

/** Makes an engine here that keeps its store with `adapter`. Without an adapter, the options of `open` choose the storage. */
export function inlineEngine(adapter: StorageAdapter | undefined): Port {
  const waiting: { readonly data: Request | ArrayBuffer; readonly ports: readonly MessagePort[] }[] = [];
  let turnAt = performance.now();
  const deliver = (): void => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) member.receive(next);
  };
  const port: Port = {
    onmessage: null,
    postMessage: (message, transfer) => {
      waiting.push({ data: message as Request | ArrayBuffer, ports: transfer as MessagePort[] });
      if (waiting.length > 1) return;
      if (performance.now() - turnAt < TURN_MS) {
        soon(deliver);
        return;
      }
      afterTurn(() => {
        turnAt = performance.now();
        deliver();
      });
    },
    terminate: () => {
      waiting.length = 0;
      member.end();
    },
  };
  const answer = (data: Response | ArrayBuffer): void =>
    soon(() => port.onmessage?.({ data } as MessageEvent<Response | ArrayBuffer>));
  const member = new Member(answer, undefined, adapter, codeHere);
  return port;
}
