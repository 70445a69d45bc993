/**
 * Keeps spare slots open in advance, for tables that the compactor writes. Creating a slot costs milliseconds, and is
 * impossible inside a synchronous turn.
 *
 * Invariant: one growth at a time. A growth that fails (quota) is not tried again before a pause.
 */

import { VarveError } from '../errors.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import type { ManagedDevice } from '../storage/device.ts';
import type { EngineStore } from '../wasm/store.ts';

const PAUSE_MS = 5000;
/** Slots created at once when a job needs one and none is free. */
const GROW_FOR_JOB = 2;

/** Grows the device of one store. */
export class SlotKeeper {
  readonly #store: EngineStore;
  readonly #device: ManagedDevice;
  #growing: Promise<number> | undefined;
  #notBefore = 0;

  constructor(store: EngineStore, device: ManagedDevice) {
    this.#store = store;
    this.#device = device;
  }

  /** Grows in the background if spare slots are running low. */
  keep(): void {
    if (this.#growing !== undefined || performance.now() < this.#notBefore) return;
    const wanted = this.#store.wantedSlots();
    if (wanted > 0 && this.#device.count() < this.#device.slotsMax) this.#grow(wanted).catch(() => undefined);
  }

  /** Resolves when the current growth, if any, has ended. */
  async idle(): Promise<void> {
    await this.#growing?.catch(() => undefined);
  }

  /**
   * Closes a slot for a table that the compactor will write; grows the device when no slot is free.
   * @throws `VARVE_STORAGE_FULL` when there can be no more slots. The engine itself can work without a free slot.
   */
  async lend(table: number, bytesHint: number): Promise<number> {
    for (;;) {
      const slot = this.#store.lend(table, bytesHint);
      if (slot !== undefined) {
        this.#device.release(slot);
        return slot;
      }
      const added = await (this.#growing ?? this.#grow(GROW_FOR_JOB));
      if (added === 0) throw new VarveError('VARVE_STORAGE_FULL', 'No file is spare for the compactor.');
    }
  }

  #grow(slots: number): Promise<number> {
    const growing = this.#added(slots).finally(() => {
      this.#growing = undefined;
    });
    growing.catch(() => undefined);
    this.#growing = growing;
    return growing;
  }

  /** Adds slots, until the engine has a fault: from then on only the device waits for them, when it closes. */
  async #added(slots: number): Promise<number> {
    let ended: (() => void) | undefined;
    const fault = new Promise<never>((_, reject) => {
      ended = this.#store.fault.onFault(reject);
    });
    try {
      const added = await Promise.race([this.#device.grow(slots), fault]);
      if (added > 0) this.#store.slotsAdded();
      else this.#notBefore = performance.now() + PAUSE_MS;
      return added;
    } catch (error) {
      this.#notBefore = performance.now() + PAUSE_MS;
      throw commitFailure(error);
    } finally {
      ended?.();
    }
  }
}
