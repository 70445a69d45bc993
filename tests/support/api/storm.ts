// Many calls at once that read and change one key: each must succeed, and find the value that the call before it left.

import type { Key, Store } from 'varve';
import type { Racing, Storm } from './history.ts';
import { callRacing, type RacingState, racingFound } from './racing.ts';
import { textOf } from './values.ts';

type Db = Store<Key, unknown>;

/** The data that a storm needs besides its calls. */
interface Context {
  readonly clients: readonly Db[];
  readonly before: RacingState;
  /** The number of its first call. */
  readonly tag: number;
  readonly start: number;
  readonly turn: () => Promise<void>;
}

/** Makes the calls, over all clients; returns the content afterwards. Throws if a call was lost, or done twice. */
export async function runStorm(
  { key, count, by, waits }: Storm,
  { clients, before, tag, start, turn }: Context,
): Promise<RacingState> {
  const callOf = (i: number): Racing =>
    by === 'update' || (by === 'both' && i % 2 === 0)
      ? { op: 'update', key, waits, throws: false, lifetime: 'kept' }
      : { op: 'transaction', reads: [key], appends: [key], counts: false, waits, throws: false };
  const answers = await Promise.all(
    Array.from({ length: count }, (_, i) => {
      const db = clients[i % clients.length] as Db;
      return callRacing(db, { call: callOf(i), tag: tag + i }, turn);
    }),
  );
  const after = await racingFound(clients[0] as Db, before.ticks, start);
  const old = before.lists.get(key);
  const begun = old === undefined || (old.dies !== undefined && old.dies < before.ticks) ? [] : old.calls;
  const found = after.lists.get(key)?.calls ?? [];
  const made = found.slice(begun.length);
  const isWhole = made.length === count && new Set(made).size === count && made.every((call) => call >= tag);
  if (textOf(found.slice(0, begun.length)) !== textOf(begun) || !isWhole) {
    throw new Error(`${count} calls of a storm left ${textOf(found)} of ${textOf(begun)}`);
  }
  for (const [i, call] of made.entries()) {
    const seen = found.slice(0, begun.length + i);
    const expected = seen.length === 0 ? 'undefined' : textOf(seen);
    const answer = (answers[call - tag] as string).replace(/; -$/, '');
    if (answer !== expected) throw new Error(`a call of a storm found ${answer}, and came behind ${expected}`);
  }
  return after;
}
