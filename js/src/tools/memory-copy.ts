/**
 * A repair reads and writes synchronously. A device that commits later cannot do that, so the repair works on copies in memory.
 *
 *     damaged store  --pieces-->  memory  --salvage-->  memory  --pieces, then all first pages-->  new store
 *
 * Invariant: the first pages are written last, in one commit; until then, the copied bytes do not open as a store. The memory use is
 * the size of the damaged store plus the size of the salvaged one.
 */

import { isDeferred, type ManagedDevice, SLOT_DATA_OFFSET, SlotError } from '../storage/device.ts';
import { MemoryDevice } from '../storage/memory.ts';

const PIECE_BYTES = 256 * 1024;

/** The device itself, or a copy of it if it commits later. Bytes that the storage cannot read are zeros in the copy. */
export async function readable(device: ManagedDevice): Promise<ManagedDevice> {
  if (!isDeferred(device)) return device;
  const copy = new MemoryDevice({ slots: device.count(), slotsMax: device.slotsMax });
  const piece = new Uint8Array(PIECE_BYTES);
  for (let slot = 0; slot < device.count(); slot++) {
    const size = device.size(slot);
    for (let at = 0; at < size; at += PIECE_BYTES) {
      const into = piece.subarray(0, Math.min(PIECE_BYTES, size - at));
      await device.resident(() => readIntact(device, slot, into, at));
      if (into.some((byte) => byte !== 0)) copy.write(slot, into, at);
    }
    if (copy.size(slot) < size) copy.truncate(slot, size);
  }
  return copy;
}

/** Reads, page by page where the storage cannot read all of it. */
function readIntact(device: ManagedDevice, slot: number, into: Uint8Array, at: number): void {
  try {
    device.read(slot, into, at);
  } catch (error) {
    if (!(error instanceof SlotError) || error.kind !== 'io') throw error;
    into.fill(0);
    if (into.length <= SLOT_DATA_OFFSET) return;
    for (let from = 0; from < into.length; from += SLOT_DATA_OFFSET) {
      readIntact(device, slot, into.subarray(from, from + SLOT_DATA_OFFSET), at + from);
    }
  }
}

/** Copies into an empty device the store that was made in memory in its place. Does nothing if both are the same device. */
export async function fill(device: ManagedDevice, made: ManagedDevice): Promise<void> {
  if (device === made || !isDeferred(device)) return;
  await device.grow(made.count() - device.count());
  const piece = new Uint8Array(PIECE_BYTES);
  for (let slot = 0; slot < made.count(); slot++) {
    const size = made.size(slot);
    device.truncate(slot, size);
    for (let at = SLOT_DATA_OFFSET; at < size; at += PIECE_BYTES) {
      while (device.isPressed) await device.committed();
      device.write(slot, piece.subarray(0, made.read(slot, piece, at)), at);
    }
  }
  await device.committed();
  const page = piece.subarray(0, SLOT_DATA_OFFSET);
  for (let slot = 0; slot < made.count(); slot++) {
    device.write(slot, page.subarray(0, made.read(slot, page, 0)), 0);
    device.flush(slot);
  }
  await device.committed();
}
