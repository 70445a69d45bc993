/**
 * The module that checks and repairs stores (`varve-tools.wasm`), loaded when somebody asks for it.
 *
 * Invariant: an instance does one check or one repair and is dropped with it, so that neither its memory nor a fault of it
 * outlives the work. Devices are known to it by their place in the list that it was made with.
 */

import { VarveError } from '../errors.ts';
import { type SlotDevice, SlotError } from '../storage/device.ts';
import { compile, type WasmSource } from '../wasm/compile.ts';
import type { ToolsProgress } from './types.ts';

/** The raw exports: numbers in, numbers out; bytes through one buffer (crates/varve-tools/src/lib.rs). */
interface ToolsExports {
  readonly memory: WebAssembly.Memory;
  tools_input(length: number): number;
  tools_output(): number;
  tools_output_length(): number;
  tools_done(): number;
  tools_total(): number;
  tools_report(): void;
  check_page(slot: number, bytes: number): void;
  check_begin(logEnd: number): number;
  check_step(): number;
  need_slot(): number;
  need_offset(): number;
  need_length(): number;
  check_feed(): void;
  repair_begin(source: number, target: number, strict: number, filesMax: number): number;
  repair_step(): number;
  repair_wanted(): number;
  repair_added(): number;
}

/** Compiles the module. */
export function loadTools(source?: WasmSource): Promise<WebAssembly.Module> {
  return compile(source ?? (() => new URL('./varve-tools.wasm', import.meta.url)), 'tools');
}

/** One instance. */
export class Tools {
  readonly #exports: ToolsExports;

  constructor(module: WebAssembly.Module, devices: readonly SlotDevice[] = []) {
    let memory: WebAssembly.Memory | undefined;
    const view = (at: number, length: number) => new Uint8Array(memory?.buffer ?? new ArrayBuffer(0), at >>> 0, length);
    const instance = new WebAssembly.Instance(module, { varve_host: hostOf(devices, view) });
    this.#exports = instance.exports as unknown as ToolsExports;
    memory = this.#exports.memory;
  }

  get exports(): ToolsExports {
    return this.#exports;
  }

  get progress(): ToolsProgress {
    return { done: this.#exports.tools_done(), total: this.#exports.tools_total() };
  }

  /** Hands bytes over. */
  put(bytes: Uint8Array): void {
    const at = this.#exports.tools_input(bytes.length) >>> 0;
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
  }

  /** Passes an answer that is fine, throws the error of one that is not. */
  run(call: (exports: ToolsExports) => number): number {
    let status: number;
    try {
      status = call(this.#exports);
    } catch (cause) {
      throw new VarveError('VARVE_INTERNAL', 'The tools stopped on an unexpected error.', { cause });
    }
    if (status < 0) throw VarveError.fromNumber(-status, this.#text());
    return status;
  }

  /** What was found, as it is so far. */
  report<T>(): T {
    this.#exports.tools_report();
    return JSON.parse(this.#text()) as T;
  }

  #text(): string {
    const { memory, tools_output, tools_output_length } = this.#exports;
    return new TextDecoder().decode(new Uint8Array(memory.buffer, tools_output() >>> 0, tools_output_length()));
  }
}

type HostFunction = (device: number, slot: number, a: number, b: number, c: number) => number;

/** What the module imports: the engine's contract with its host (wasm/host.ts), over the given devices. */
function hostOf(devices: readonly SlotDevice[], view: (at: number, length: number) => Uint8Array) {
  const on =
    (call: (device: SlotDevice, slot: number, a: number, b: number, c: number) => number): HostFunction =>
    (number, slot, a, b, c) => {
      const device = devices[number];
      if (device === undefined) return -3;
      try {
        return call(device, slot, a, b, c);
      } catch (error) {
        const kind = error instanceof SlotError ? error.kind : 'io';
        return kind === 'full' ? -1 : kind === 'closed' ? -3 : -2;
      }
    };
  return {
    slot_count: (device: number) => devices[device]?.count() ?? 0,
    slot_is_open: (device: number, slot: number) => (devices[device]?.isOpen(slot) ? 1 : 0),
    slot_size: on((device, slot) => device.size(slot)),
    slot_read: on((device, slot, offset, at, length) => device.read(slot, view(at, length), offset)),
    slot_write: on((device, slot, offset, at, length) => device.write(slot, view(at, length), offset)),
    slot_flush: on((device, slot) => {
      device.flush(slot);
      return 0;
    }),
    slot_truncate: on((device, slot, bytes) => {
      device.truncate(slot, bytes);
      return 0;
    }),
  };
}
