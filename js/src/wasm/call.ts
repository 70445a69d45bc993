/**
 * Calls of the engine whose answer is a `VarveError` instead of a negative number.
 */

import { VarveError } from '../errors.ts';
import type { Engine } from './exports.ts';

/** The error behind a negative status of the last call. */
export function errorOf(engine: Engine, status: number): VarveError {
  engine.fault.guarded(() => engine.exports.varve_last_error());
  return VarveError.fromNumber(-status, new TextDecoder().decode(engine.memory.takeOut()));
}

/** Makes a call; passes an answer that is fine, throws the error of one that is not. */
export function attempt(engine: Engine, call: () => number): number {
  const status = engine.fault.guarded(call);
  if (status < 0) throw errorOf(engine, status);
  return status;
}
