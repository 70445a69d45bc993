/**
 * Handles an engine instance that stops in the middle of a call. A panic of the compiled code is a bare trap
 * (`RuntimeError: unreachable`); a host function that throws also ends a call in the middle.
 *
 * Invariant: an interrupted call may have left the instance's memory half changed, so nothing calls into it again. Every later
 * call of its store fails with the first fault, and no other write is acknowledged. Writes acknowledged before are safe: opening
 * the store again, in a new instance, recovers them. Other stores have other instances.
 */

import { VarveError } from '../errors.ts';

/** The fault of one instance, if it had one. */
export class EngineFault {
  readonly #listeners = new Set<(fault: VarveError) => void>();
  #found: VarveError | undefined;

  /** The fault, once there was one. */
  get found(): VarveError | undefined {
    return this.#found;
  }

  /** Takes the error that a call into the engine threw; returns the fault with which this and every later call fails. */
  of(cause: unknown): VarveError {
    if (this.#found !== undefined) return this.#found;
    const why = cause instanceof Error ? cause.message : String(cause);
    this.#found = new VarveError(
      'VARVE_INTERNAL',
      `The engine stopped on an unexpected error (${why}). Close the store and reopen it: what was acknowledged is kept, and recovered then.`,
      { cause },
    );
    for (const listener of [...this.#listeners]) listener(this.#found);
    return this.#found;
  }

  /** Calls the listener at the first fault; returns a function that removes it. */
  onFault(listener: (fault: VarveError) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs a raw call of the engine; everything it throws is a fault. The hottest calls have this code inline. */
  guarded<T>(call: () => T): T {
    if (this.#found !== undefined) throw this.#found;
    try {
      return call();
    } catch (error) {
      throw this.of(error);
    }
  }
}
