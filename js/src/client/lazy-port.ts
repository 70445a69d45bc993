/**
 * A port to an engine whose code is not loaded yet.
 *
 * Invariant: messages reach the engine in the order in which they were posted, including messages from before it was loaded.
 * `terminate` reaches it after them.
 */

import { notLoaded, toWire } from '../errors.ts';
import type { Port } from './client.ts';

/** A port that loads the other end with its first message. */
export function lazyPort(load: () => Promise<Port>): Port {
  let other: Promise<Port | undefined> | undefined;
  const connect = async (): Promise<Port | undefined> => {
    try {
      const loaded = await load().catch(notLoaded);
      loaded.onmessage = (event) => port.onmessage?.(event);
      return loaded;
    } catch (error) {
      port.onmessage?.({ data: { type: 'dead', error: toWire(error) } } as MessageEvent);
      return undefined;
    }
  };
  const port: Port = {
    onmessage: null,
    onerror: null,
    postMessage: (message, transfer) => {
      other ??= connect();
      void other.then((loaded) => loaded?.postMessage(message, transfer));
    },
    terminate: () => void other?.then((loaded) => loaded?.terminate?.()),
  };
  return port;
}
