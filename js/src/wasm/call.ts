/**
 * Calls of the engine that throw a `VarveError` instead of returning a negative number. A call that found bytes missing throws a `SlotError`
 * of kind `pending`, as the device did inside it: the caller fetches the bytes and makes the call again.
 */

import { VarveError } from '../errors.ts';
import { missingBytes } from '../storage/device.ts';
import type { Engine } from './engine.ts';

/** The engine's number for missing bytes. It is no code of the package, because no caller of the package ever gets it. */
export const PENDING = 13;

/** The error behind a negative status of the last call. */
export function errorOf(engine: Engine, status: number): VarveError {
  engine.fault.guarded(() => engine.exports.varve_last_error());
  return VarveError.fromNumber(-status, new TextDecoder().decode(engine.memory.takeOut()));
}

/** Makes a call; returns its result if it is not an error, and throws the error otherwise. */
export function attempt(engine: Engine, call: () => number): number {
  const status = engine.fault.guarded(call);
  if (status === -PENDING) throw missingBytes;
  if (status < 0) throw errorOf(engine, status);
  return status;
}
