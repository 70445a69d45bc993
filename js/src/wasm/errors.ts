/**
 * Turns what the engine's control plane throws into a `VarveError`.
 *
 * Invariant: an error of the engine reads `<code number> <sentence>`; anything else (a trap above all) is
 * a fault of the whole instance (wasm/fault.ts).
 */

import { VarveError } from '../errors.ts';
import { engineFault } from './fault.ts';

/** The `VarveError` for a thrown thing. */
export function controlError(error: unknown): VarveError {
  if (error instanceof VarveError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const match = /^(\d{1,2}) (.*)$/s.exec(message);
  if (match?.[1] !== undefined && match[2] !== undefined) return VarveError.fromNumber(Number(match[1]), match[2]);
  return engineFault(error);
}
