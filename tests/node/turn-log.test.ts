/** When what a synchronous turn staged is logged. */

import { expect, test } from 'vitest';
import { VarveError } from '../../js/src/errors.ts';
import { TurnLog } from '../../js/src/sync/turn-log.ts';
import type { EngineHost } from '../../js/src/worker/engine-host.ts';

const BUSY = -7;
/** A log that tries again at once tries for ever; here it is let go after so many, to fail rather than hang. */
const TRIES_MAX = 10_000;

/**
 * The story: a store was closed while a write waited for a spare file. There was nothing to wait for any more, so that the log
 * tried again within the same turn, for ever: the slice of work that would have made room, and the closing itself, never came to run.
 */
test('a write that finds no spare file leaves the turns between its attempts to others', async () => {
  let tries = 0;
  let isRoom = false;
  const host = {
    gate: undefined,
    store: {
      h: 1,
      memory: { outSequence: () => 1 },
      exports: { varve_commit: () => (++tries > TRIES_MAX || isRoom ? 0 : BUSY), varve_pending: () => 1 },
      error: () => new VarveError('VARVE_BUSY', 'no spare file'),
    },
    onEnd: () => () => undefined,
    room: async () => undefined,
    afterTurn: () => undefined,
  } as unknown as EngineHost;
  const log = new TurnLog(host, undefined);
  expect(log.staged(10, undefined)).toEqual({ sequence: 1, durability: 'buffered' });
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(tries).toBeGreaterThan(1);
  expect(tries).toBeLessThan(10);
  isRoom = true;
  const before = tries;
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(tries).toBe(before + 1);
});
