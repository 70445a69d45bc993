// Both halves of the question whether the engine of a store is at rest, over a channel between a page and the worker of the engine.
// Invariant: an engine at rest has no transaction of IndexedDB open, and begins none before it is called again.

const CHANNEL = 'resting';
const QUESTION = 'Is it at rest?';
const ANSWER = 'It is.';
/** A timer for a later time than this is no work of the engine: it waits for a page that may return. */
const SOON_MS = 5000;
/** A job works between its timers and transactions, too. So the engine is at rest when this many looks in a row found neither. */
const LOOKS = 5;
const LOOK_MS = 50;

/** In the worker, before the engine is called: counts its timers and transactions, and answers questions when it is at rest. */
export function answerAtRest(): void {
  const { setTimeout: arm, clearTimeout: disarm } = globalThis;
  const timers = new Set<unknown>();
  const setTimer = (callback: () => void, ms = 0): unknown => {
    const timer: unknown = arm(() => {
      timers.delete(timer);
      callback();
    }, ms);
    if (ms <= SOON_MS) timers.add(timer);
    return timer;
  };
  const clearTimer = (timer: ReturnType<typeof arm> | undefined): void => {
    timers.delete(timer);
    disarm(timer);
  };
  Object.assign(globalThis, { setTimeout: setTimer, clearTimeout: clearTimer });

  const transactions = new Set<IDBTransaction>();
  const { prototype } = IDBDatabase;
  const { transaction: begin } = prototype;
  prototype.transaction = function (...args) {
    const transaction = begin.apply(this, args);
    transactions.add(transaction);
    for (const end of ['complete', 'abort']) {
      transaction.addEventListener(end, () => transactions.delete(transaction));
    }
    return transaction;
  };

  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = async ({ data }) => {
    if (data !== QUESTION) return;
    for (let quiet = 0; quiet < LOOKS; quiet = timers.size + transactions.size === 0 ? quiet + 1 : 0) {
      await new Promise((resolve) => arm(resolve, LOOK_MS));
    }
    channel.postMessage(ANSWER);
  };
}

/** In a page: resolves when the engine of its open store is at rest. */
export function untilAtRest(): Promise<void> {
  const channel = new BroadcastChannel(CHANNEL);
  return new Promise((resolve) => {
    channel.onmessage = ({ data }) => {
      if (data !== ANSWER) return;
      channel.close();
      resolve();
    };
    channel.postMessage(QUESTION);
  });
}
