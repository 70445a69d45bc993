/**
 * Why a store did not open in time: somebody has it who does not share it, or the one who leads is slow to answer.
 *
 * Invariant: of the lock of those that have a store open, whoever shares it has a part, and whoever does not all of it.
 */

import { VarveError } from '../errors.ts';
import { openLock } from './names.ts';

/** The error for an `open` that nobody answered within its `wait`. */
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
