/**
 * Locks that are held until they are released, as promises.
 *
 * Invariant: a caller that stops waiting never gets the lock.
 */

/** Releases a held lock; resolves when the next waiting request can get it. */
export type Release = () => Promise<void>;

/** Waits for a lock; rejects when the signal aborts, and when the browser refuses locks. */
export function hold(name: string, signal?: AbortSignal, mode: LockMode = 'exclusive'): Promise<Release> {
  return request(name, signal === undefined ? { mode } : { mode, signal }) as Promise<Release>;
}

/** Takes a lock if it is free; otherwise resolves with undefined. */
export function holdIfFree(name: string): Promise<Release | undefined> {
  return request(name, { ifAvailable: true });
}

function request(name: string, options: LockOptions): Promise<Release | undefined> {
  return new Promise((resolve, reject) => {
    const ended: Promise<void> = navigator.locks
      .request(name, options, (lock) => {
        if (lock === null) return resolve(undefined);
        return new Promise<void>((end) => {
          resolve(() => {
            end();
            return ended;
          });
        });
      })
      .then(() => undefined);
    ended.catch(reject);
  });
}

/** Calls back when the lock is free. Then its holder is gone. */
export function whenFree(name: string, signal: AbortSignal, callback: () => void): void {
  hold(name, signal).then(
    (release) => {
      void release();
      if (!signal.aborted) callback();
    },
    () => undefined,
  );
}
