/**
 * What happens when the engine stops in the middle of a call: a panic of the compiled code is a bare trap
 * (`RuntimeError: unreachable`), and a host function that throws cuts a call off as well.
 *
 * Invariant: whatever was interrupted may have left the instance's memory half changed, so nothing calls into it again.
 * The first fault is the answer to every later call of every store of this realm; none of them acknowledges another
 * write. What was acknowledged before is safe: opening a store again in a new worker recovers it.
 */

import { VarveError } from '../errors.ts';

const listeners = new Set<(fault: VarveError) => void>();
let found: VarveError | undefined;

/** Takes what a call into the engine threw; returns the fault that this and every later call is answered with. */
export function engineFault(cause: unknown): VarveError {
  if (found !== undefined) return found;
  const why = cause instanceof Error ? cause.message : String(cause);
  found = new VarveError(
    'VARVE_INTERNAL',
    `The engine stopped on an unexpected error (${why}). Close the store and reopen it in a new worker: what was acknowledged is kept, and recovered there.`,
    { cause },
  );
  for (const listener of [...listeners]) listener(found);
  return found;
}

/** The fault of this realm's engine, if it had one. */
export function faultOfEngine(): VarveError | undefined {
  return found;
}

/** Calls back at the first fault; returns what ends that. */
export function onEngineFault(listener: (fault: VarveError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Runs a raw call of the engine, whatever it throws being a fault. The hottest calls spell this out. */
export function guarded(call: () => number): number {
  if (found !== undefined) throw found;
  try {
    return call();
  } catch (error) {
    throw engineFault(error);
  }
}
