/** Which errors mean that a read, and the write that depends on it, must be made again. */

import { hasCode, VarveError } from '../errors.ts';
import { EngineConflict } from '../protocol/conflict.ts';

/**
 * Whether others caused a failure: they wrote a key that the attempt had read, or its snapshot was lost with the tab that led the
 * store.
 */
export function isConflict(error: unknown): boolean {
  return error instanceof EngineConflict || hasCode(error, 'VARVE_RETRY');
}

/** The error for an update whose function wrote the key itself, through the transaction. */
export function overtaken(): VarveError {
  return new VarveError('VARVE_CONFLICT', 'The transaction wrote the key of an update under way.');
}
