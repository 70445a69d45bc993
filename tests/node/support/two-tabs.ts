/**
 * Two clients of one engine, like those of two tabs. They get no leases, so they must not have a cache.
 *
 * Invariant: frames of both go to the server in the order in which they were sent. It answers in that order, and so an answer finds its
 * client. Other requests are distinguished by their numbers.
 */

import type { Port } from '../../../js/src/client/client.ts';
import type { Request, Response } from '../../../js/src/protocol/messages.ts';
import { spawnServer } from './engine.ts';

type Numbered = Extract<Request, { readonly id: number }>;

/** Makes ports, each for one `openStore`. The store is closed when the last of them is closed. */
export function tabs(count: number): (() => Port)[] {
  const server = spawnServer();
  const ports: Port[] = [];
  const frames: number[] = [];
  let openReport: Response | undefined;
  let openCount = count;
  const tell = (tab: number, data: unknown): void => ports[tab]?.onmessage?.(new MessageEvent('message', { data }));
  server.onmessage = ({ data }: MessageEvent<Response | ArrayBuffer>) => {
    if (data instanceof ArrayBuffer) return tell(frames.shift() as number, data);
    if (data.type === 'dead') {
      for (const tab of ports.keys()) tell(tab, data);
      return;
    }
    if (!('id' in data)) return;
    if (data.type === 'opened') openReport = data;
    tell(data.id % count, { ...data, id: Math.floor(data.id / count) });
  };
  return Array.from({ length: count }, (_, tab) => () => {
    const port: Port = {
      onmessage: null,
      postMessage: (message, transfer) => {
        if (message instanceof ArrayBuffer) {
          frames.push(tab);
          // Over a port of its own, a client has no id.
          new DataView(message).setUint32(8, tab + 1, true);
        } else if ('id' in (message as Request)) {
          const request = message as Numbered;
          const answer = (data: object): void => void setImmediate(() => tell(tab, { ...data, id: request.id }));
          if (request.type === 'open' && openReport !== undefined) return answer(openReport);
          if (request.type === 'close' && --openCount > 0) return answer({ type: 'result', value: undefined });
        }
        const numbered =
          message instanceof ArrayBuffer
            ? message
            : { ...(message as Numbered), id: (message as Numbered).id * count + tab };
        server.postMessage(numbered, transfer);
      },
    };
    ports[tab] = port;
    return port;
  });
}

/** A port whose frames wait, in their order, until `before` has resolved. */
export function held(spawn: () => Port, before: () => Promise<unknown> | undefined): () => Port {
  return () => {
    const port = spawn();
    let last = Promise.resolve<unknown>(undefined);
    const outer: Port = {
      onmessage: null,
      postMessage: (message, transfer) => {
        const wait = message instanceof ArrayBuffer ? before() : undefined;
        last = last.then(() => wait).then(() => port.postMessage(message, transfer));
      },
    };
    port.onmessage = (event) => outer.onmessage?.(event);
    return outer;
  };
}
