/** Which errors say that a read and the write that depends on it are to be made again. */

import { VarveError } from '../errors.ts';
import { EngineConflict } from '../protocol/conflict.ts';

/** Whether it is for others that something failed: they wrote what it had read, or its snapshot went with the tab that led the store. */
export function isConflict(error: unknown): boolean {
  return error instanceof EngineConflict || (error as Partial<VarveError> | undefined)?.code === 'VARVE_RETRY';
}

/** A function of an update wrote the key itself, through the transaction. */
export function overtaken(): VarveError {
  return new VarveError('VARVE_CONFLICT', 'The transaction wrote the key of an update under way.');
}
