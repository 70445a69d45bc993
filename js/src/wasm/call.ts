/**
 * Calls of the engine that throw a `VarveError` instead of returning a negative number.
 */

import { VarveError } from '../errors.ts';
import type { Engine } from './engine.ts';

/** The error behind a negative status of the last call. */
export function errorOf(engine: Engine, status: number): VarveError {
  engine.fault.guarded(() => engine.exports.varve_last_error());
  return VarveError.fromNumber(-status, new TextDecoder().decode(engine.memory.takeOut()));
}

/** Makes a call; returns its result if it is not an error, and throws the error otherwise. */
export function attempt(engine: Engine, call: () => number): number {
  const status = engine.fault.guarded(call);
  if (status < 0) throw errorOf(engine, status);
  return status;
}
