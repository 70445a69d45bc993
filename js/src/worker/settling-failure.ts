/**
 * What a settling device that failed means to those who use the store.
 *
 * Invariant: what was acknowledged before is kept. Where there was no room, what was not is taken back, and the store goes on; else it
 * is over, and the next opening finds what is kept.
 */

import { VarveError } from '../errors.ts';
import { SlotError } from '../storage/device.ts';

/** The error for what a settling device threw; anything else as it is. */
export function settlingFailure(error: unknown): unknown {
  if (!(error instanceof SlotError)) return error;
  const again = 'What was acknowledged before is kept: open the store again.';
  switch (error.kind) {
    case 'full':
      return new VarveError(
        'VARVE_STORAGE_FULL',
        'The storage is full: nothing of this write was kept. Delete data or ask for more room, then try again.',
        { cause: error },
      );
    case 'closed':
      return new VarveError('VARVE_LOCKED', `The store cannot be used here any more: ${error.message}`, {
        cause: error,
      });
    default:
      return new VarveError('VARVE_IO', `The storage failed: ${error.message} ${again}`, { cause: error });
  }
}
