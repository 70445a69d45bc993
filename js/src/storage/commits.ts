/**
 * When the writes of a store are committed: as soon as they are made or, over a deferred device, later.
 *
 * Invariant: a device whose writes are committed at once never waits, is never short of room here, and cannot go back.
 */

import { isDeferred, type ManagedDevice } from './device.ts';

/** The commits of one device. */
export interface Commits {
  /** Whether slots cannot become longer for lack of room. */
  readonly isTight: boolean;
  /** Nothing was written since a refused commit. There may still be no room, so only the writes of clients are done. */
  readonly isQuiet: boolean;
  /** Whether the device can go back after a commit that was refused for lack of room. */
  readonly canGoBack: boolean;
  /** Goes back to the committed state. */
  goBack(): Promise<void>;
  /** Resolves when all writes so far are committed. */
  committed(): Promise<void>;
  /** Waits for room that may become free, at most until a time of `performance.now()`; resolves with whether there is some. */
  moreRoom(untilMs: number): Promise<boolean>;
  /** Runs a call that only reads until everything that it reads is in memory. */
  resident<T>(call: () => T): T | Promise<T>;
}

const AT_ONCE: Commits = {
  isTight: false,
  isQuiet: false,
  canGoBack: false,
  goBack: async () => undefined,
  committed: async () => undefined,
  moreRoom: async () => false,
  resident: (call) => call(),
};

/** The commits of a device. */
export function commitsOf(device: ManagedDevice): Commits {
  return isDeferred(device) ? device : AT_ONCE;
}
