/**
 * What the engine imports from its host: the slots of a device, by number.
 *
 * The compiled engine names this module `varve_host`. Every function looks its device up by the number that
 * `registerDevice` gave, so that one engine instance serves several stores.
 *
 * Invariant: nothing throws across the boundary. A failed call returns a negative number:
 *
 *     -1 no room    -2 the storage failed    -3 the slot is not open here
 *
 * A read of bytes that have yet to be fetched is a -2 as well: whoever called the engine asks the device, and calls again.
 *
 * Offsets are f64: exact up to 2^53, and never the i32 that wraps at 2 GiB.
 */

import { type SlotDevice, SlotError } from '../storage/device.ts';

const FULL = -1;
const IO = -2;
const CLOSED = -3;

const devices: (SlotDevice | undefined)[] = [];
let memory: WebAssembly.Memory | undefined;
let bytes = new Uint8Array(0);

/** Tells where the engine's memory is; called once, when the engine is instantiated. */
export function attachMemory(engineMemory: WebAssembly.Memory): void {
  memory = engineMemory;
  bytes = new Uint8Array(engineMemory.buffer);
}

/** Makes a device known to the engine; returns its number. */
export function registerDevice(device: SlotDevice): number {
  const free = devices.indexOf(undefined);
  const id = free === -1 ? devices.length : free;
  devices[id] = device;
  return id;
}

/** Forgets a device: calls that still name it answer "not open". */
export function unregisterDevice(device: number): void {
  devices[device] = undefined;
}

export function slot_count(device: number): number {
  return devices[device]?.count() ?? 0;
}

export function slot_is_open(device: number, slot: number): number {
  return devices[device]?.isOpen(slot) ? 1 : 0;
}

export function slot_size(device: number, slot: number): number {
  try {
    return devices[device]?.size(slot) ?? 0;
  } catch {
    return 0;
  }
}

export function slot_read(device: number, slot: number, offset: number, at: number, length: number): number {
  const found = devices[device];
  if (found === undefined) return CLOSED;
  try {
    return found.read(slot, view(at, length), offset);
  } catch (error) {
    return status(error);
  }
}

export function slot_write(device: number, slot: number, offset: number, at: number, length: number): number {
  const found = devices[device];
  if (found === undefined) return CLOSED;
  try {
    return found.write(slot, view(at, length), offset);
  } catch (error) {
    return status(error);
  }
}

export function slot_flush(device: number, slot: number): number {
  const found = devices[device];
  if (found === undefined) return CLOSED;
  try {
    found.flush(slot);
    return 0;
  } catch (error) {
    return status(error);
  }
}

export function slot_truncate(device: number, slot: number, length: number): number {
  const found = devices[device];
  if (found === undefined) return CLOSED;
  try {
    found.truncate(slot, length);
    return 0;
  } catch (error) {
    return status(error);
  }
}

/** A view of engine memory; taken anew after the memory grew, because a detached view silently writes nothing. */
function view(at: number, length: number): Uint8Array {
  if (bytes.length === 0 && memory !== undefined) bytes = new Uint8Array(memory.buffer);
  return bytes.subarray(at >>> 0, (at >>> 0) + length);
}

function status(error: unknown): number {
  if (!(error instanceof SlotError)) return IO;
  return error.kind === 'full' ? FULL : error.kind === 'closed' ? CLOSED : IO;
}
