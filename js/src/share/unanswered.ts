/**
 * The reason why a store did not open in time: a worker has it open and does not share it, or the leader is slow to answer.
 *
 * Invariant: a worker that shares a store holds its open lock in shared mode. A worker that does not share it holds the lock in
 * exclusive mode.
 */

import { VarveError } from '../errors.ts';
import { openLock } from '../storage/lock.ts';

/** The error for an `open` that no leader answered within its `lockTimeout`. */
export async function unanswered(name: string): Promise<VarveError> {
  const { held = [] } = await navigator.locks.query().catch((): LockManagerSnapshot => ({}));
  const isKept = held.some((lock) => lock.name === openLock(name) && lock.mode === 'exclusive');
  return new VarveError(
    'VARVE_LOCKED',
    isKept
      ? `A worker has the store "${name}" open and does not share it. Close it there, or wait longer.`
      : `The tab that leads the store "${name}" has not answered yet; it may be busy. Open the store again, or wait longer.`,
  );
}
