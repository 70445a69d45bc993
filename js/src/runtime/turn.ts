/**
 * Lets other work run: waits for the end of the current turn of the event loop.
 *
 * Invariant: `nextTurn` resolves after messages that were already waiting, without the 4 ms delay of nested timers. It is a
 * macrotask: promises alone never delay it.
 */

const waiting: (() => void)[] = [];
let channel: MessageChannel | undefined;
/** Whether this is workerd, the runtime of Cloudflare's Workers. */
export const isWorkerd = globalThis.navigator?.userAgent === 'Cloudflare-Workers';

const resolved = Promise.resolve();

/** Calls back as a microtask, at the end of this turn. Browsers take longer for `queueMicrotask`. */
export function soon(callback: () => void): void {
  void resolved.then(callback);
}

/** Resolves in a later turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => afterTurn(resolve));
}

/** Calls back in a later turn of the event loop. */
export function afterTurn(callback: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => void };
  if (setImmediate !== undefined && !isWorkerd) {
    // Node handles up to a thousand messages in one turn of its loop, and no timer runs between them.
    setImmediate(callback);
    return;
  }
  if (typeof MessageChannel !== 'function' || isWorkerd) {
    // workerd does not delay nested timers, and a channel there belongs to the object that made it.
    setTimeout(callback, 0);
    return;
  }
  channel ??= open();
  waiting.push(callback);
  hold(channel.port1, true);
  channel.port2.postMessage(undefined);
}

function open(): MessageChannel {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    const callback = waiting.shift();
    if (waiting.length === 0) hold(port1, false);
    callback?.();
  };
  return { port1, port2 };
}

/** On Node, a port keeps the process alive. Here it does so only while a callback waits. Browsers have neither method. */
function hold(port: MessagePort & { ref?: () => void; unref?: () => void }, waited: boolean): void {
  if (waited) port.ref?.();
  else port.unref?.();
}
