/**
 * The module that checks and repairs stores (`varve-tools.wasm`), loaded when it is needed.
 *
 * Invariant: an instance does one check or one repair and is dropped afterwards, so that neither its memory nor a fault in it
 * outlives the work. It knows devices by their place in the list that it was made with.
 */

import { VarveError } from '../errors.ts';
import type { SlotDevice } from '../storage/device.ts';
import type { Progress } from '../types.ts';
import { compile, type WasmSource } from '../wasm/compile.ts';
import { HostDevices } from '../wasm/host.ts';

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
  repair_key_slots(source: number): number;
  repair_begin(source: number, target: number, dropOlder: number, filesMax: number): number;
  repair_step(): number;
}

/** Compiles the module. */
export function loadTools(source?: WasmSource): Promise<WebAssembly.Module> {
  return compile(source ?? (() => new URL('./varve-tools.wasm', import.meta.url)), 'tools');
}

/** One instance. */
export class Tools {
  readonly #exports: ToolsExports;

  constructor(module: WebAssembly.Module, devices: readonly SlotDevice[] = []) {
    const host = new HostDevices();
    this.#exports = host.instantiate<ToolsExports>(module);
    for (const device of devices) host.register(device);
  }

  get exports(): ToolsExports {
    return this.#exports;
  }

  /** The bytes that are read, of those to read. */
  get progress(): Progress {
    return { done: this.#exports.tools_done(), total: this.#exports.tools_total() };
  }

  /** Passes bytes to the module. */
  put(bytes: Uint8Array): void {
    const at = this.#exports.tools_input(bytes.length) >>> 0;
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
  }

  /** Returns a successful result, or throws the error of a failed one. */
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

  /** The key slots of the store in a device; undefined if there are none. */
  keySlots(device: number): Uint8Array<ArrayBuffer> | undefined {
    return this.run((exports) => exports.repair_key_slots(device)) === 0 ? undefined : this.#output().slice();
  }

  /** The findings so far. */
  report<T>(): T {
    this.#exports.tools_report();
    return JSON.parse(this.#text()) as T;
  }

  #text(): string {
    return new TextDecoder().decode(this.#output());
  }

  #output(): Uint8Array<ArrayBuffer> {
    const { memory, tools_output, tools_output_length } = this.#exports;
    return new Uint8Array(memory.buffer as ArrayBuffer, tools_output() >>> 0, tools_output_length());
  }
}
