/**
 * Informs the engine how much room is left in a browser's quota or on a disk, so that compactions stay small enough to fit.
 *
 * Invariant: it never delays other work. The storage is asked between turns and at most once in `PAUSE_MS`. If the storage does
 * not report its room, the engine finds the limit when a write fails.
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

  /** Asks again, unless the last time was less than `PAUSE_MS` ago. */
  look(): void {
    const now = performance.now();
    if (this.#stopped || now < this.#notBefore) return;
    void this.lookNow();
  }

  /** From now on the store is not called any more. */
  shutDown(): void {
    this.#stopped = true;
  }

  /** Asks now; resolves once the engine knows. */
  async lookNow(): Promise<void> {
    this.#notBefore = performance.now() + PAUSE_MS;
    try {
      const bytes = await this.#device.freeBytes?.();
      if (!this.#stopped && bytes !== undefined) this.#store.setRoom(Math.max(0, bytes));
    } catch {
      // Not every storage can answer.
    }
  }
}
