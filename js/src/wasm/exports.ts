/**
 * What the compiled engine offers, as types.
 *
 * Exports take and give numbers only: bytes go in through the scratch or the input, answers come back through the out cells
 * (wasm/memory.ts). What each does and leaves where is said where it is written, in crates/varve-wasm.
 *
 * Invariant: an export returns 0 or more when it is fine and the negated number of an error code when it is not.
 */

import type { InitOutput } from '../../pkg/varve.js';
import type { EngineFault } from './fault.ts';
import type { HostDevices } from './host.ts';
import type { EngineMemory } from './memory.ts';

/** The exports, as wasm-bindgen declares them: a call that the engine does not have, or has otherwise, does not compile. */
export type EngineExports = InitOutput;

/** How a store is opened. */
export interface StoreSettings {
  memoryBytes: number;
  filesMax: number;
  log: boolean;
  /** The storage refuses commits, and not writes: rewriting tables there on a full one makes it refuse more. */
  settles?: boolean;
  /** Bytes of flushed log segments kept for `changes`; negative for what suits the store. */
  historyBytes: number;
}

/** One engine instance. */
export interface Engine {
  readonly exports: EngineExports;
  /** Where its host functions find the slots. */
  readonly devices: HostDevices;
  /** Why it must not be called any more. */
  readonly fault: EngineFault;
  /** Views of its memory. */
  readonly memory: EngineMemory;
}
