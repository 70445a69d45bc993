/**
 * Locks that readers have together, and a writer alone: Web Locks, and without these, locks of this program.
 *
 * Invariant: they are granted in the order of the requests. So a reader waits for a writer that came before it.
 */

import { hold } from '../share/locks.ts';

/** The requests of a name: each a promise that resolves when the lock is released. */
interface Queue {
  /** The last writer. */
  writer: Promise<void>;
  /** The readers that have not released the lock yet. */
  readonly readers: Set<Promise<void>>;
}

const queues = new Map<string, Queue>();

/** Waits for a lock; resolves with what releases it. */
export function holdLock(name: string, mode: LockMode): Promise<() => unknown> {
  return globalThis.navigator?.locks === undefined ? holdHere(name, mode) : hold(name, undefined, mode);
}

async function holdHere(name: string, mode: LockMode): Promise<() => void> {
  const queue = queues.get(name) ?? { writer: Promise.resolve(), readers: new Set() };
  queues.set(name, queue);
  let release = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { writer, readers } = queue;
  if (mode === 'shared') {
    readers.add(ended);
    void ended.then(() => readers.delete(ended));
    await writer;
  } else {
    queue.writer = ended;
    await Promise.all([writer, ...readers]);
  }
  return release;
}
