/**
 * Letting other work in: the end of the current turn of the event loop.
 *
 * Invariant: `nextTurn` resolves after messages that were already waiting, without the 4 ms that nested timers are
 * held back for, and is a macrotask: promises alone never hold it up.
 */

const waiting: (() => void)[] = [];
let channel: MessageChannel | undefined;

/** Resolves in a later turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => afterTurn(resolve));
}

/** Calls back in a later turn of the event loop. */
export function afterTurn(callback: () => void): void {
  if (channel === undefined) {
    channel = new MessageChannel();
    channel.port1.onmessage = () => waiting.shift()?.();
    unref(channel.port1);
  }
  waiting.push(callback);
  ref(channel.port1);
  channel.port2.postMessage(undefined);
}

/** On Node a port with a listener keeps the process alive. */
function unref(port: MessagePort & { unref?: () => void }): void {
  port.unref?.();
}

function ref(port: MessagePort & { ref?: () => void }): void {
  port.ref?.();
}
