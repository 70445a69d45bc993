/**
 * The messages between the engine worker and its compactor.
 *
 * A job in one picture; everything large is transferred, nothing is copied twice:
 *
 *     engine                      compactor
 *     job {spec} ---------------> steps the job
 *     <------------ need {table}  reads are served by the engine, which has the handles
 *     input {bytes} ------------>
 *     <------------ lend {table}  the engine closes a free slot
 *     slot {slot} --------------> opens it, writes, flushes, closes
 *     <-- finished {table, size}  the engine opens it again
 *     <------------ done {result}
 *
 * Invariant: a slot is open on one side only. Each `need` and `lend` gets exactly one answer while the job runs.
 */

import type { WireError } from '../errors.ts';

/** Engine to compactor. */
export type CompactorRequest =
  | { readonly type: 'start'; readonly module: WebAssembly.Module; readonly store: string }
  | { readonly type: 'job'; readonly job: number; readonly spec: Uint8Array; readonly urgent: boolean }
  | { readonly type: 'input'; readonly job: number; readonly bytes: Uint8Array }
  | { readonly type: 'slot'; readonly job: number; readonly slot: number }
  /** The engine could not serve a `need` or a `lend`. */
  | { readonly type: 'refused'; readonly job: number; readonly error: WireError };

/** Compactor to engine. */
export type CompactorResponse =
  | {
      readonly type: 'need';
      readonly job: number;
      readonly table: number;
      readonly offset: number;
      readonly length: number;
    }
  | { readonly type: 'lend'; readonly job: number; readonly table: number }
  | { readonly type: 'finished'; readonly job: number; readonly table: number; readonly size: number }
  | { readonly type: 'damaged'; readonly job: number; readonly table: number }
  | { readonly type: 'done'; readonly job: number; readonly result: Uint8Array }
  | { readonly type: 'failed'; readonly job: number; readonly error: WireError };
