/**
 * The sign of life of a holder that runs in a container: it touches the file of its claim.
 *
 * Containers that have one folder, and one host name, have pids of their own (a PID namespace each, here a *space*). A pid of another
 * space says nothing, so an opener there watches the file. No clocks are compared: the opener only sees whether the file's time
 * changes, and measures by its own clock for how long it did not.
 *
 *     holder    touches the file every second; and before a write, if it did not do so within the last quarter of a second
 *     opener    finds that nobody touched it for 4 s of watching, removes it, makes its own claim, waits for half a second, opens
 *
 * Invariant: a holder writes nothing after another one opened the store. It may have been silent because its thread was busy, or
 * because it was frozen. Then it must touch the file before its next write, and that fails when the file is gone. If it touched the
 * file just before an opener removed it, it may write for another quarter of a second: the opener waits for longer. Only a holder
 * that is frozen in the middle of a write, and wakes up later, still ends this one write.
 */

import { statSync, utimesSync } from 'node:fs';
import { isClaimed, lostPlace, type Place } from './place.ts';

/** How often a holder touches its claim. */
export const TOUCH_MS = 1000;
/** How long a holder may write without touching its claim. */
const WRITE_MS = TOUCH_MS / 4;
/** How long a claim that nobody touches is watched before its holder counts as dead. */
const QUIET_MS = 4 * TOUCH_MS;
/** A holder that was silent for this long may come back while its claim is removed. */
const LATE_MS = 2 * TOUCH_MS;
/** How long an opener waits then before it opens the store. */
export const SETTLE_MS = 2 * WRITE_MS;

/**
 * The function that a holder calls before each write and again and again: it touches the claim when that is due. Where no opener looks for
 * this, it does nothing. It throws `lostPlace` when the claim is gone.
 */
export function pulseOf(place: Place): () => void {
  if (!place.isTouched) return () => undefined;
  let touchedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - touchedAt < WRITE_MS) return;
    try {
      const time = new Date();
      utimesSync(place.claim, time, time);
      touchedAt = now;
    } catch {
      if (!isClaimed(place)) throw lostPlace(place);
    }
  };
}

/** What one opener has seen of claims that only their touches show to be alive. */
export class Watch {
  readonly #seen = new Map<string, { touched: number | undefined; lookedAt: number; quietMs: number }>();
  /** Looks at a claim; whether its holder counts as alive. In doubt it does. */
  isAlive(path: string): boolean {
    const before = this.#seen.get(path);
    const touched = touchTimeOf(path);
    const lookedAt = performance.now();
    let quietMs = 0;
    if (before !== undefined && touched !== undefined && touched === before.touched) {
      // An opener that was frozen for longer than this has not watched: the holder may have been frozen with it.
      quietMs = before.quietMs + Math.min(TOUCH_MS, lookedAt - before.lookedAt);
    }
    this.#seen.set(path, { touched, lookedAt, quietMs });
    return quietMs < QUIET_MS;
  }

  /** Whether a claim was removed, by this opener or another one that watched it, whose holder may not have noticed yet. */
  get mustSettle(): boolean {
    return [...this.#seen.values()].some(({ quietMs }) => quietMs >= LATE_MS);
  }
}

function touchTimeOf(path: string): number | undefined {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return undefined;
  }
}
