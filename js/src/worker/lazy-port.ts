/**
 * A port to an engine whose code has yet to be loaded.
 *
 * Invariant: messages reach it in the order in which they were posted, those from before it was there included.
 */

import type { Port } from './client.ts';

/** A port that loads the other end with its first message. */
export function lazyPort(load: () => Promise<Port>): Port {
  let other: Port | undefined;
  let is_loading = false;
  const waiting: [unknown, Transferable[]][] = [];
  const connect = async (): Promise<void> => {
    try {
      const loaded = await load();
      loaded.onmessage = (event) => port.onmessage?.(event);
      for (const [message, transfer] of waiting) loaded.postMessage(message, transfer);
      other = loaded;
    } catch (error) {
      port.onerror?.({ message: String(error) } as ErrorEvent);
    }
  };
  const port: Port = {
    onmessage: null,
    onerror: null,
    postMessage: (message, transfer) => {
      if (other !== undefined) return other.postMessage(message, transfer);
      waiting.push([message, transfer]);
      if (!is_loading) void connect();
      is_loading = true;
    },
  };
  return port;
}
