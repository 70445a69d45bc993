/**
 * Turns what the engine's control plane throws into a `VarveError`.
 *
 * Invariant: an error of the engine reads `<code number> <sentence>`; anything else (a trap above all) is
 * `VARVE_INTERNAL`, and the instance must not be trusted after it.
 */

import { VarveError } from '../errors.ts';

/** The `VarveError` for a thrown thing. */
export function controlError(error: unknown): VarveError {
  if (error instanceof VarveError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const match = /^(\d{1,2}) (.*)$/s.exec(message);
  if (match?.[1] !== undefined && match[2] !== undefined) return VarveError.fromNumber(Number(match[1]), match[2]);
  return new VarveError('VARVE_INTERNAL', `The engine stopped on an unexpected error: ${message}`, { cause: error });
}
