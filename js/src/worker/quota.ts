/**
 * Tells the engine how much room the browser's quota leaves, so that compactions stay small enough to fit.
 *
 * Invariant: never in the way. The browser is asked between turns and at most once in `PAUSE_MS`; where it does not say,
 * the engine finds the end of the room when it gets there.
 */

import type { EngineStore } from '../wasm/store.ts';

const PAUSE_MS = 5000;

/** Keeps the engine of one store informed. */
export class Quota {
  readonly #store: EngineStore;
  #notBefore = 0;
  #stopped = false;

  constructor(store: EngineStore) {
    this.#store = store;
  }

  /** Asks the browser again, unless that was done a moment ago. */
  look(): void {
    const now = performance.now();
    if (this.#stopped || now < this.#notBefore) return;
    this.#notBefore = now + PAUSE_MS;
    void this.#look();
  }

  /** The store must not be called any more. */
  stop(): void {
    this.#stopped = true;
  }

  async #look(): Promise<void> {
    try {
      const { quota, usage } = await navigator.storage.estimate();
      if (this.#stopped || quota === undefined || usage === undefined) return;
      this.#store.setRoom(Math.max(0, quota - usage));
    } catch {
      // Not every context has a storage manager, or answers.
    }
  }
}
