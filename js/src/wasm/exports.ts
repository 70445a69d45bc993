/**
 * The exports of the compiled engine, as types.
 *
 * Exports take and return numbers only: bytes go in through the scratch or the input, results come back through the out cells
 * (wasm/memory.ts). Each export, and where it leaves its results, is documented in its source, in crates/varve-wasm.
 *
 * Invariant: an export returns 0 or more when it succeeds, and the negated number of an error code when it fails.
 */

import type { InitOutput } from '../../pkg/varve.js';
import type { DataKeys } from './data-keys.ts';

/** The exports, as wasm-bindgen declares them: a call that the engine does not have, or has in another form, does not compile. */
export type EngineExports = InitOutput;

/** How a store is opened. */
export interface StoreSettings {
  memoryBytes: number;
  filesMax: number;
  log: boolean;
  /** When full, the storage refuses commits and not writes: then rewriting tables makes it refuse more. */
  deferred?: boolean;
  /** Bytes of flushed log segments kept for `changes`; negative for a default that depends on the size of the store. */
  historyBytes: number;
  /** The data keys of an encrypted store; of a new one, too. */
  encryption?: DataKeys | undefined;
}
