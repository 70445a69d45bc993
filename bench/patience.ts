/** Calls that may meet a busy store. */

import type { SyncSession } from './engine.ts';

/** A store that stays busy for so many tries is stuck. */
const TRIES_MAX = 1000;

/** Makes a call; when the store is busy, waits for room and makes it again. Only then it answers with a promise. */
export function patiently(session: SyncSession, call: () => void, tries = TRIES_MAX): void | Promise<void> {
  try {
    call();
  } catch (error) {
    const room = tries > 1 ? session.room(error) : undefined;
    if (room === undefined) throw error;
    return room.then(() => patiently(session, call, tries - 1));
  }
}
