/**
 * Tells the engine how much room the storage has left, a browser's quota or a disk, so that compactions stay small enough to fit.
 *
 * Invariant: never in the way. The storage is asked between turns and at most once in `PAUSE_MS`; where it does not say,
 * the engine finds the end of the room when it gets there.
 */

import type { ManagedDevice } from '../storage/device.ts';
import type { EngineStore } from '../wasm/store.ts';

const PAUSE_MS = 5000;

/** Keeps the engine of one store informed. */
export class Quota {
  readonly #store: EngineStore;
  readonly #device: ManagedDevice;
  #notBefore = 0;
  #stopped = false;

  constructor(store: EngineStore, device: ManagedDevice) {
    this.#store = store;
    this.#device = device;
  }

  /** Asks again, unless that was done a moment ago. */
  look(): void {
    const now = performance.now();
    if (this.#stopped || now < this.#notBefore) return;
    void this.lookNow();
  }

  /** The store must not be called any more. */
  stop(): void {
    this.#stopped = true;
  }

  /** Asks now; resolves once the engine knows. */
  async lookNow(): Promise<void> {
    this.#notBefore = performance.now() + PAUSE_MS;
    try {
      const bytes = await this.#device.freeBytes?.();
      if (!this.#stopped && bytes !== undefined) this.#store.setRoom(Math.max(0, bytes));
    } catch {
      // Not every storage answers.
    }
  }
}
