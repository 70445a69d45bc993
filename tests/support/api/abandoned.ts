// Thousands of followers that wait, whose callers no longer wait for them: the next write must not cost a message for each of them.

import type { Key, Store } from 'varve';
import type { Abandoned } from './history.ts';

/**
 * The bytes of all messages that one write may cause, and the additional bytes for each follower: far less than a request of its own
 * takes.
 */
const BYTES_MAX = 16_384;
const BYTES_EACH_MAX = 8;
/** It is quiet once nothing was sent for this many turns. */
const QUIET_TURNS = 5;

/** How a store is watched from outside. */
interface Context {
  /** How many bytes were sent to the engine so far; undefined where nothing counts them. */
  readonly sent: () => number | undefined;
  readonly turn: () => Promise<void>;
}

/** Leaves followers waiting, and writes beside them. Throws if that is too much work, or if they do not get the write. */
export async function runAbandoned(
  db: Store<Key, unknown>,
  { count, isSame }: Abandoned,
  { sent, turn }: Context,
): Promise<void> {
  const followers = Array.from({ length: count }, (_, i) =>
    (isSame ? db.changes({ keysOnly: true }) : db.watch(['abandoned', i])).next(),
  );
  for (const follower of followers) follower.catch(() => undefined);
  const quiet = async (): Promise<number | undefined> => {
    let last = sent();
    for (let turns = 0; turns < QUIET_TURNS; turns++) {
      await turn();
      const now = sent();
      if (now !== last) turns = -1;
      last = now;
    }
    return last;
  };
  await db.get(['behind what they asked']);
  const before = await quiet();
  const { sequence } = await db.set(['abandoned'], count);
  if (isSame) {
    const changes = await Promise.all(followers);
    const missed = changes.filter(({ value }) => value?.sequence !== sequence).length;
    if (missed > 0) throw new Error(`${missed} of ${count} followers got another change than ${sequence}`);
  }
  const after = await quiet();
  if (before === undefined || after === undefined) return;
  const bytes = after - before;
  if (bytes > BYTES_MAX + BYTES_EACH_MAX * count) {
    throw new Error(`one write beside ${count} followers took ${bytes} bytes of messages`);
  }
}
