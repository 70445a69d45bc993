/**
 * What happens when an engine instance stops in the middle of a call: a panic of the compiled code is a bare trap
 * (`RuntimeError: unreachable`), and a host function that throws cuts a call off as well.
 *
 * Invariant: whatever was interrupted may have left the instance's memory half changed, so nothing calls into it again.
 * The first fault is the answer to every later call of its store, which acknowledges no other write. What was acknowledged
 * before is safe: opening the store again, in an instance of its own, recovers it. Other stores have other instances.
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

  /** Takes what a call into the engine threw; returns the fault that this and every later call is answered with. */
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

  /** Calls back at the first fault; returns what ends that. */
  onFault(listener: (fault: VarveError) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs a raw call of the engine, whatever it throws being a fault. The hottest calls spell this out. */
  guarded<T>(call: () => T): T {
    if (this.#found !== undefined) throw this.#found;
    try {
      return call();
    } catch (error) {
      throw this.of(error);
    }
  }
}
