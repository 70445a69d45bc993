/**
 * An adapter whose stores stay in memory when they are closed, as files would.
 *
 * Invariant: a store has one opener at a time; a device that was closed answers nothing.
 */

import { VarveError } from '../../../js/src/errors.ts';
import type { LockOptions, StorageAdapter } from '../../../js/src/storage/adapter.ts';
import { MemoryDevice } from '../../../js/src/storage/memory.ts';

class KeptDevice extends MemoryDevice {
  isHeld = false;

  override async closeAll(): Promise<void> {
    await super.closeAll();
    this.isHeld = false;
  }
}

/** Stores of one test. */
export class KeptDevices implements StorageAdapter {
  readonly kind = 'kept';
  readonly opened: string[] = [];
  readonly #devices = new Map<string, KeptDevice>();

  async open(name: string, { lockTimeout: wait }: LockOptions): Promise<MemoryDevice> {
    const device = this.#devices.get(name) ?? new KeptDevice();
    if (device.isHeld) throw new VarveError('VARVE_LOCKED', `Somebody has it open, and ${wait} ms were not enough.`);
    for (let slot = 0; slot < device.count(); slot++) await device.retake(slot);
    device.isHeld = true;
    this.#devices.set(name, device);
    this.opened.push(name);
    return device;
  }

  async list(): Promise<string[]> {
    return [...this.#devices.keys()];
  }

  async delete(name: string): Promise<boolean> {
    if (this.#devices.get(name)?.isHeld) throw new VarveError('VARVE_LOCKED', 'Somebody has it open.');
    return this.#devices.delete(name);
  }
}
