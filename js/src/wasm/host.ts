/**
 * The functions that an engine instance imports from its host: access to the slots of its devices, by number.
 *
 * The compiled modules name these functions `varve_host`; `crates/varve-host` is their other side.
 *
 * Invariant: nothing throws across the boundary. A failed call returns a negative number:
 *
 *     -1 no room    -2 the storage failed    -3 the slot is not open here    -4 the bytes of a read are not in memory yet
 *
 * After -4 the engine's call ends, too, with an error of its own: the caller of the engine asks the device for the bytes, and calls again.
 *
 * Offsets are f64: exact up to 2^53, and never the i32 that wraps at 2 GiB.
 */

import { VarveError } from '../errors.ts';
import { type SlotDevice, SlotError } from '../storage/device.ts';

const FULL = -1;
const IO = -2;
const CLOSED = -3;
const PENDING = -4;

/** Chromium sets aside so much of the addresses of a process for each instance that there is room for 125. */
const NO_ROOM = 'There is no memory for another engine. Close a store: a page can have about 100 open at once.';

type HostFunction = (device: number, slot: number, a: number, b: number, c: number) => number;

/** The devices of one instance. */
export class HostDevices {
  readonly #devices: (SlotDevice | undefined)[] = [];
  #memory: WebAssembly.Memory | undefined;
  #bytes = new Uint8Array(0);

  /** Makes an instance of a module whose host functions reach these devices. */
  instantiate<Exports extends { readonly memory: WebAssembly.Memory }>(module: WebAssembly.Module): Exports {
    try {
      const { exports } = new WebAssembly.Instance(module, { varve_host: this.#imports() });
      this.#memory = exports.memory as WebAssembly.Memory;
      return exports as unknown as Exports;
    } catch (cause) {
      if (cause instanceof RangeError) throw new VarveError('VARVE_UNAVAILABLE', NO_ROOM, { cause });
      throw cause;
    }
  }

  /** Registers a device with the instance; returns its number, which no other device will have. */
  register(device: SlotDevice): number {
    return this.#devices.push(device) - 1;
  }

  /** Removes a device: calls that still use its number return "not open". */
  unregister(device: number): void {
    this.#devices[device] = undefined;
  }

  #imports(): Record<string, HostFunction> {
    return {
      slot_count: (device) => this.#devices[device]?.count() ?? 0,
      slot_is_open: (device, slot) => (this.#devices[device]?.isOpen(slot) ? 1 : 0),
      slot_size: this.#on((device, slot) => device.size(slot), 0),
      slot_read: this.#on((device, slot, offset, at, length) => device.read(slot, this.#view(at, length), offset)),
      slot_write: this.#on((device, slot, offset, at, length) => device.write(slot, this.#view(at, length), offset)),
      slot_flush: this.#on((device, slot) => {
        device.flush(slot);
        return 0;
      }),
      slot_truncate: this.#on((device, slot, bytes) => {
        device.truncate(slot, bytes);
        return 0;
      }),
    };
  }

  /** Makes a call on a device; `failed` is the result of every failure. Without it the result is the number of the failure. */
  #on(
    call: (device: SlotDevice, slot: number, a: number, b: number, c: number) => number,
    failed?: number,
  ): HostFunction {
    return (number, slot, a, b, c) => {
      const device = this.#devices[number];
      if (device === undefined) return failed ?? CLOSED;
      try {
        return call(device, slot, a, b, c);
      } catch (error) {
        return failed ?? status(error);
      }
    };
  }

  /** A view of the instance's memory; taken again after the memory grew, because a detached view silently writes nothing. */
  #view(at: number, length: number): Uint8Array {
    if (this.#bytes.length === 0 && this.#memory !== undefined) this.#bytes = new Uint8Array(this.#memory.buffer);
    return this.#bytes.subarray(at >>> 0, (at >>> 0) + (length >>> 0));
  }
}

const STATUS = { full: FULL, io: IO, closed: CLOSED, pending: PENDING };

function status(error: unknown): number {
  return error instanceof SlotError ? STATUS[error.kind] : IO;
}
