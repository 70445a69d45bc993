/**
 * Slots in RAM: the storage of `storage: 'memory'`, of the fallback where there is no OPFS, and of tests.
 *
 * Invariant: behaves as OPFS slots do, short writes included (`maxBytes` acts as the quota). Two things differ: nothing outlives
 * the realm, and no other worker can open a slot.
 */

import { type ManagedDevice, SlotError } from './device.ts';

interface Slot {
  bytes: Uint8Array;
  size: number;
  open: boolean;
}

/** Options of a new `MemoryDevice`. */
interface MemoryDeviceOptions {
  /** Slots at first (8). */
  slots?: number;
  /** Most slots (128). */
  slotsMax?: number;
  /** Most bytes of all slots together; beyond them, writes fall short (unlimited). */
  maxBytes?: number;
}

/** A pool of slots in RAM. */
export class MemoryDevice implements ManagedDevice {
  readonly kind = 'memory';
  readonly lendable = false;
  readonly slotsMax: number;
  readonly #slots: Slot[] = [];
  readonly #maxBytes: number;
  #bytesUsed = 0;

  constructor(options: MemoryDeviceOptions = {}) {
    this.slotsMax = options.slotsMax ?? 128;
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY;
    this.#add(options.slots ?? 8);
  }

  count(): number {
    return this.#slots.length;
  }

  isOpen(slot: number): boolean {
    return this.#slots[slot]?.open ?? false;
  }

  size(slot: number): number {
    return this.#slot(slot).size;
  }

  read(slot: number, into: Uint8Array, at: number): number {
    const { bytes, size } = this.#slot(slot);
    const count = Math.max(0, Math.min(into.length, size - at));
    into.set(bytes.subarray(at, at + count));
    return count;
  }

  write(slot: number, bytes: Uint8Array, at: number): number {
    const target = this.#slot(slot);
    const grownBy = Math.max(0, at + bytes.length - target.size);
    const short = Math.max(0, this.#bytesUsed + grownBy - this.#maxBytes);
    const count = Math.max(0, bytes.length - short);
    if (count === 0) return 0;
    this.#resize(target, Math.max(target.size, at + count));
    target.bytes.set(count === bytes.length ? bytes : bytes.subarray(0, count), at);
    return count;
  }

  flush(slot: number): void {
    this.#slot(slot);
  }

  truncate(slot: number, bytes: number): void {
    const target = this.#slot(slot);
    if (this.#bytesUsed + bytes - target.size > this.#maxBytes && bytes > target.size) {
      throw new SlotError('full', 'The memory device is at its limit.');
    }
    if (bytes < target.size) target.bytes.fill(0, bytes, target.size);
    this.#resize(target, bytes);
  }

  async grow(slots: number): Promise<number> {
    return this.#add(slots);
  }

  release(slot: number): void {
    this.#slot(slot).open = false;
  }

  async retake(slot: number): Promise<void> {
    const target = this.#slots[slot];
    if (target === undefined) throw new SlotError('closed', `There is no slot ${slot}.`);
    target.open = true;
  }

  async closeAll(): Promise<void> {
    for (const slot of this.#slots) slot.open = false;
  }

  #slot(slot: number): Slot {
    const found = this.#slots[slot];
    if (found === undefined || !found.open) throw new SlotError('closed', `Slot ${slot} is not open.`);
    return found;
  }

  #add(slots: number): number {
    const added = Math.max(0, Math.min(slots, this.slotsMax - this.#slots.length));
    for (let i = 0; i < added; i++) this.#slots.push({ bytes: new Uint8Array(0), size: 0, open: true });
    return added;
  }

  #resize(slot: Slot, size: number): void {
    if (size > slot.bytes.length) {
      const grown = new Uint8Array(Math.max(size, slot.bytes.length * 2, 4096));
      grown.set(slot.bytes.subarray(0, slot.size));
      slot.bytes = grown;
    }
    this.#bytesUsed += size - slot.size;
    slot.size = size;
  }
}
