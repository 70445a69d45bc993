/**
 * A storage in memory. It keeps its stores when they are closed, and it can lose power or be full when a test asks for it. It is for the
 * tests of programs, and an example of a storage that keeps the contract.
 *
 * Invariant: it loses everything that may be lost: every byte written since the last flush of its slot. Its limit is exact to
 * the byte.
 */

import { VarveError } from '../errors.ts';
import { delay } from '../runtime/wait.ts';
import type { LockOptions, StorageAdapter } from '../storage/adapter.ts';
import { type ManagedDevice, SlotError } from '../storage/device.ts';

const SLOTS_FIRST = 8;
const SLOTS_MAX = 128;
const PAUSE_MS = 5;

/** A slot: its bytes, and the bytes that a power cut leaves. */
interface KeptSlot {
  bytes: Uint8Array;
  flushed: Uint8Array;
}

/** A store: its slots, and the device that has it open. */
interface KeptStore {
  readonly slots: KeptSlot[];
  holder: LossyDevice | undefined;
}

/** Stores in memory. */
export class LossyStorage implements StorageAdapter {
  readonly kind = 'lossy';
  readonly #stores = new Map<string, KeptStore>();
  #maxBytes = Number.POSITIVE_INFINITY;

  async open(name: string, { lockTimeout, signal }: LockOptions): Promise<ManagedDevice> {
    // Another waiting caller may have opened it by now.
    do await this.#free(name, { lockTimeout, signal });
    while (this.#isHeld(name));
    let store = this.#stores.get(name);
    if (store === undefined) {
      store = { slots: Array.from({ length: SLOTS_FIRST }, newSlot), holder: undefined };
      this.#stores.set(name, store);
    }
    const device = new LossyDevice(store, () => this.#left());
    store.holder = device;
    return device;
  }

  async list(): Promise<string[]> {
    return [...this.#stores.keys()];
  }

  async delete(name: string, options: LockOptions): Promise<boolean> {
    if (!this.#stores.has(name)) return false;
    do await this.#free(name, options);
    while (this.#isHeld(name));
    return this.#stores.delete(name);
  }

  /** Ends all open devices without a close, and removes all bytes that were not flushed. */
  losePower(): void {
    for (const store of this.#stores.values()) {
      for (const slot of store.slots) slot.bytes = slot.flushed.slice();
      store.holder?.die();
      store.holder = undefined;
    }
  }

  /** Limits the storage to this many more bytes; undefined: any number. */
  setRoom(bytes: number | undefined): void {
    this.#maxBytes = bytes === undefined ? Number.POSITIVE_INFINITY : this.#used() + bytes;
  }

  #used(): number {
    let bytes = 0;
    for (const store of this.#stores.values()) for (const slot of store.slots) bytes += slot.bytes.length;
    return bytes;
  }

  #left(): number {
    return this.#maxBytes === Number.POSITIVE_INFINITY ? this.#maxBytes : Math.max(0, this.#maxBytes - this.#used());
  }

  #isHeld(name: string): boolean {
    return this.#stores.get(name)?.holder !== undefined;
  }

  async #free(name: string, { lockTimeout, signal }: LockOptions): Promise<void> {
    const deadline = performance.now() + lockTimeout;
    while (this.#isHeld(name)) {
      signal?.throwIfAborted();
      if (performance.now() >= deadline) throw new VarveError('VARVE_LOCKED', `The store "${name}" is open already.`);
      await delay(PAUSE_MS);
    }
  }
}

/** The slots of one store, while it is open. */
class LossyDevice implements ManagedDevice {
  readonly kind = 'lossy';
  readonly lendable = false;
  readonly slotsMax = SLOTS_MAX;
  readonly #store: KeptStore;
  readonly #left: () => number;
  readonly #released = new Set<number>();
  #dead = false;

  constructor(store: KeptStore, left: () => number) {
    this.#store = store;
    this.#left = left;
  }

  count(): number {
    return this.#store.slots.length;
  }

  isOpen(slot: number): boolean {
    return !this.#dead && slot < this.count() && !this.#released.has(slot);
  }

  size(slot: number): number {
    return this.#slot(slot).bytes.length;
  }

  read(slot: number, into: Uint8Array, at: number): number {
    const found = this.#slot(slot).bytes.subarray(at, at + into.length);
    into.set(found);
    return found.length;
  }

  write(slot: number, bytes: Uint8Array, at: number): number {
    const kept = this.#slot(slot);
    const size = kept.bytes.length;
    const end = Math.min(at + bytes.length, Math.max(size, size + this.#left()));
    const count = Math.max(0, end - at);
    if (count === 0) return 0;
    if (end > size) kept.bytes = resized(kept.bytes, end);
    kept.bytes.set(bytes.subarray(0, count), at);
    return count;
  }

  flush(slot: number): void {
    const kept = this.#slot(slot);
    kept.flushed = kept.bytes.slice();
  }

  truncate(slot: number, bytes: number): void {
    const kept = this.#slot(slot);
    if (bytes > kept.bytes.length + this.#left()) throw new SlotError('full', 'The storage has no room for that.');
    kept.bytes = resized(kept.bytes, bytes);
  }

  async grow(slots: number): Promise<number> {
    const added = this.#dead ? 0 : Math.min(slots, SLOTS_MAX - this.count());
    for (let i = 0; i < added; i++) this.#store.slots.push(newSlot());
    return added;
  }

  release(slot: number): void {
    this.#slot(slot);
    this.#released.add(slot);
  }

  async retake(slot: number): Promise<void> {
    this.#released.delete(slot);
  }

  async closeAll(): Promise<void> {
    this.#dead = true;
    if (this.#store.holder === this) this.#store.holder = undefined;
  }

  /** Ends the device without a close. */
  die(): void {
    this.#dead = true;
  }

  #slot(slot: number): KeptSlot {
    const found = this.isOpen(slot) ? this.#store.slots[slot] : undefined;
    if (found === undefined) throw new SlotError('closed', `Slot ${slot} is not open.`);
    return found;
  }
}

function newSlot(): KeptSlot {
  return { bytes: new Uint8Array(0), flushed: new Uint8Array(0) };
}

function resized(bytes: Uint8Array, size: number): Uint8Array {
  const copy = new Uint8Array(size);
  copy.set(bytes.subarray(0, size));
  return copy;
}
