/**
 * Translates the failure of a deferred device for the callers of the store.
 *
 * Invariant: acknowledged writes are kept. If there was no room, writes that were not acknowledged are taken back, and the store
 * goes on. After any other failure the store ends, and the next opening finds the acknowledged writes.
 */

import { VarveError } from '../errors.ts';
import { SlotError } from './device.ts';

/** The `VarveError` for an error that a deferred device threw. Any other error is returned unchanged. */
export function commitFailure(error: unknown): unknown {
  if (!(error instanceof SlotError)) return error;
  const again = 'Acknowledged writes are kept: open the store again.';
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
