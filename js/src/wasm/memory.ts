/**
 * Views of the engine's memory, and the scratch through which bytes go in.
 *
 * Invariant: a view is only used between `fresh()` and the next call into the engine that may allocate. Growing the memory detaches
 * every view. A detached view reads undefined, and its writes have no effect and throw no error. `fresh()` costs one comparison, so
 * the hot path calls it before each operation and again before it reads an answer.
 *
 *     scratch: [ key | value ]     written from its start, then the two lengths are named
 *     out:     16 cells of u32     pointers, lengths and sequences that a call returns
 */

import { invalid, type VarveError } from '../errors.ts';
import type { EngineExports } from './exports.ts';
import type { EngineFault } from './fault.ts';

/** Enough for any key and most values; longer ones make the scratch grow. */
const SCRATCH_BYTES_FIRST = 256 * 1024;
/** A scratch up to this size grows by doubling and is kept; a larger one is as long as one call needs, and is freed after it. */
const SCRATCH_BYTES_KEPT = 16 * 1024 * 1024;
/** A longer answer is freed in the engine once it is copied. */
const ANSWER_BYTES_KEPT = 1024 * 1024;

/** The engine's memory, as the TypeScript side sees it. */
export class EngineMemory {
  /** All of the memory. */
  u8 = new Uint8Array(0);
  /** The same, four bytes at a time. */
  i32 = new Int32Array(0);
  /** The scratch: never longer than the memory that the engine reserved for it, so that nothing is written outside it. */
  scratch = new Uint8Array(0);
  /** The out cells. */
  out = new Uint32Array(0);
  /** Out cells 4 and 5 as one f64. */
  outExpires = new Float64Array(0);
  readonly #exports: EngineExports;
  readonly #fault: EngineFault;
  readonly #outAt: number;
  #scratchAt = 0;
  #scratchBytes = 0;

  constructor(exports: EngineExports, fault: EngineFault) {
    this.#exports = exports;
    this.#fault = fault;
    this.#outAt = exports.varve_out() >>> 0;
    this.reserve(SCRATCH_BYTES_FIRST);
  }

  /** Takes the views again if the memory has grown. */
  fresh(): this {
    if (this.u8.length === 0) this.#retake();
    return this;
  }

  /** Makes the scratch at least `bytes` long; if it had to grow, its contents are lost. Throws if there is not enough memory. */
  reserve(bytes: number): void {
    if (bytes > this.#scratchBytes && !this.#resize(Math.max(bytes, this.#doubled()))) {
      this.#resize(SCRATCH_BYTES_FIRST);
      throw noMemory(bytes);
    }
    this.fresh();
  }

  /** Frees a scratch that was made for one large call. */
  trim(): void {
    if (this.#scratchBytes > SCRATCH_BYTES_KEPT) this.#resize(SCRATCH_BYTES_FIRST);
  }

  /** Copies bytes to the start of the scratch. */
  put(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.scratch.set(bytes);
  }

  /** Copies bytes to the input, from which the next call takes ownership of them. */
  give(bytes: Uint8Array): void {
    const at = this.#fault.guarded(() => this.#exports.varve_input(bytes.length)) >>> 0;
    if (at === 0 && bytes.length > 0) throw noMemory(bytes.length);
    this.fresh().u8.set(bytes, at);
  }

  /** A copy, in a buffer of its own, of the result of the last call at out cells 0 (pointer) and 1 (length). A `secret` is overwritten there. */
  takeOut(isSecret = false): Uint8Array<ArrayBuffer> {
    this.fresh();
    const at = this.out[0] ?? 0;
    const end = at + (this.out[1] ?? 0);
    const bytes = this.u8.slice(at, end);
    if (isSecret) this.u8.fill(0, at, end);
    if (bytes.length > ANSWER_BYTES_KEPT) this.#fault.guarded(() => this.#exports.varve_release_answer());
    return bytes;
  }

  /** The sequence in out cells 0 and 1. */
  outSequence(): number {
    return this.outU64(0);
  }

  /** The 64-bit number in an out cell and the next one. Numbers above 2^53 lose their last bits. */
  outU64(cell: number): number {
    this.fresh();
    return (this.out[cell] ?? 0) + (this.out[cell + 1] ?? 0) * 0x1_0000_0000;
  }

  #doubled(): number {
    return Math.min(this.#scratchBytes * 2, SCRATCH_BYTES_KEPT);
  }

  /** Returns false if there is no memory for it; then there is no scratch. */
  #resize(bytes: number): boolean {
    this.#scratchAt = this.#fault.guarded(() => this.#exports.varve_scratch(bytes)) >>> 0;
    this.#scratchBytes = this.#scratchAt === 0 ? 0 : bytes;
    this.#retake();
    return this.#scratchAt !== 0;
  }

  #retake(): void {
    const { buffer } = this.#exports.memory;
    this.u8 = new Uint8Array(buffer);
    this.i32 = new Int32Array(buffer);
    this.scratch = this.u8.subarray(this.#scratchAt, this.#scratchAt + this.#scratchBytes);
    this.out = new Uint32Array(buffer, this.#outAt, 16);
    this.outExpires = new Float64Array(buffer, this.#outAt + 16, 1);
  }
}

/** The error of a call that is refused because the engine has no memory for it. Nothing of the call was done. */
function noMemory(bytes: number): VarveError {
  return invalid(
    `The engine has no memory for ${bytes} bytes at once. Write less at a time, or open the store with less memory for its cache.`,
  );
}
