/** A storage with one defect: it is sound, except for the differences of its device, or of a method of its own. */

import type { LockOptions } from '../../../js/src/storage/adapter.ts';
import type { ManagedDevice } from '../../../js/src/storage/device.ts';
import { LossyStorage } from '../../../js/src/testing.ts';

/** How a broken device differs from the sound device under it. */
export type Change = (device: ManagedDevice, storage: Mutant) => Partial<ManagedDevice>;

/** A storage that is sound, except for the differences of its device, or of a method of its own. */
export class Mutant extends LossyStorage {
  /** Bytes that a device keeps for the next one, by slot. */
  readonly kept = new Map<number, Uint8Array>();
  lostPower = 0;
  room: number | undefined;
  change: Change = () => ({});

  override async open(name: string, options: LockOptions): Promise<ManagedDevice> {
    const device = await super.open(name, options);
    const sound: ManagedDevice = {
      kind: device.kind,
      lendable: false,
      slotsMax: device.slotsMax,
      count: () => device.count(),
      isOpen: (slot) => device.isOpen(slot),
      size: (slot) => device.size(slot),
      read: (slot, into, at) => device.read(slot, into, at),
      write: (slot, bytes, at) => device.write(slot, bytes, at),
      flush: (slot) => device.flush(slot),
      truncate: (slot, bytes) => device.truncate(slot, bytes),
      grow: (slots) => device.grow(slots),
      release: (slot) => device.release(slot),
      retake: (slot) => device.retake(slot),
      closeAll: () => device.closeAll(),
    };
    return { ...sound, ...this.change(device, this) };
  }

  override losePower(): void {
    super.losePower();
    this.lostPower++;
  }

  override setRoom(bytes: number | undefined): void {
    super.setRoom(bytes);
    this.room = bytes;
  }
}

/** All bytes of a slot. */
export function all(device: ManagedDevice, slot: number): Uint8Array {
  const bytes = new Uint8Array(device.size(slot));
  device.read(slot, bytes, 0);
  return bytes;
}

/** Sets the bytes of a slot to exactly these. */
export function restore(device: ManagedDevice, slot: number, bytes: Uint8Array): void {
  device.truncate(slot, 0);
  device.write(slot, bytes, 0);
}

/** Returns the second argument, once the first has been evaluated. */
export function answer<T>(_before: unknown, value: T): T {
  return value;
}

/** A storage whose devices differ from sound ones in this way. */
export const broken = (change: Change): Mutant => Object.assign(new Mutant(), { change });

/** The defect, how it is made, and the starts of the names of the clauses that must detect it. */
export type Break = [what: string, make: () => LossyStorage, clauses: string[]];
