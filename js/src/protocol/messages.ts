/**
 * The messages beside the frames, as discriminated unions: opening, closing and what is called rarely.
 * Invariant: a message is an object; an ArrayBuffer is a frame (frame-writer.ts). Both travel over one port, in order,
 * so a `close` sent after a frame finds the frame answered.
 */

import type { WireError } from '../errors.ts';
import type { RepairRequest } from '../tools/repair.ts';
import type { EngineOptions, RecoveryReport, StorageReport } from '../types.ts';

/**
 * What the engine's methods outside frames are called. `stop` ends the check of that number, or without one the repair. `after` is
 * answered with the sequence of the last acknowledged write as soon as that is another than the one it names.
 */
export type CallMethod = 'stats' | 'compact' | 'check' | 'stop' | 'after';

/** What the worker is told when it opens a store: plain data only. */
export interface OpenMessageOptions extends EngineOptions {
  /** URL of the wasm file, or the module compiled already. */
  wasm?: string | WebAssembly.Module | undefined;
}

/** Page to worker. `id` comes back with the answer. */
export type Request =
  | { readonly type: 'open'; readonly id: number; readonly name: string; readonly options: OpenMessageOptions }
  | { readonly type: 'call'; readonly id: number; readonly method: CallMethod; readonly args: readonly unknown[] }
  | { readonly type: 'close'; readonly id: number }
  /** Names of the stores of this origin: answered by a `result` with `string[]`. Needs no open store. */
  | { readonly type: 'list'; readonly id: number }
  /** Removes a store: answered by a `result` with whether it was there. Needs no open store. */
  | { readonly type: 'delete'; readonly id: number; readonly name: string; readonly wait: number }
  /** Salvages a store into a new one: tells progress, then a `result` with a `RepairReport`. Needs no open store. */
  | { readonly type: 'repair'; readonly id: number; readonly name: string; readonly request: RepairRequest }
  /** The page is hidden or goes away: flush at once. Not answered. */
  | { readonly type: 'hidden' };

/** What `open` reports. */
export interface OpenReport {
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
}

/** Worker to page. */
export type Response =
  | { readonly type: 'opened'; readonly id: number; readonly report: OpenReport }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  /** How far a call is that will be answered later. */
  | { readonly type: 'progress'; readonly id: number; readonly value: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly error: WireError }
  /** The engine cannot go on (not the answer to one request): everything pending is rejected with it. */
  | { readonly type: 'dead'; readonly error: WireError };
