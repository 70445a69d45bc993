/**
 * Copies of values, cut from large buffers.
 *
 * In V8 every new typed array over 64 bytes is expensive, because its memory is allocated off the heap. A view of an existing buffer
 * costs a small part of that. The price: a small value that is kept keeps its whole slab in memory.
 *
 *     memory  ....abcd efgh ijkl....     a value may start and end anywhere in a word
 *     slab    |bcde fghi|                whole words are copied, and the view leaves out what is not the value
 *
 * It copies words, because `set` of a `subarray` makes one more view, which costs more than copying a hundred bytes.
 *
 * Invariant: a slab is only ever appended to, so what was handed out never changes.
 */

import type { EngineMemory } from '../wasm/memory.ts';

const SLAB_BYTES = 64 * 1024;
/** V8 keeps typed arrays up to this size on its heap: they are cheaper as copies of their own. */
const SMALL_BYTES = 64;
/** Longest value that is copied word by word; above, `set` is faster. */
const WORDS_BYTES_MAX = 1024;
/** Larger values get a buffer of their own. */
const LARGE_BYTES = 8 * 1024;

/** Hands out copies of the engine's memory. */
export class Slab {
  #buffer = new ArrayBuffer(0);
  #bytes = new Uint8Array(0);
  #words = new Int32Array(0);
  #at = 0;

  /** A copy of `from.u8[start..end]`. */
  copy(from: EngineMemory, start: number, end: number): Uint8Array {
    const length = end - start;
    if (length <= SMALL_BYTES || length > LARGE_BYTES) return from.u8.slice(start, end);
    // Up to three bytes before the value and three after it are copied too.
    if (this.#at + length + 8 > this.#buffer.byteLength) this.#renew();
    const at = this.#at;
    this.#at = (at + length + 6) & ~3;
    if (length > WORDS_BYTES_MAX) {
      this.#bytes.set(from.u8.subarray(start, end), at);
      return new Uint8Array(this.#buffer, at, length);
    }
    const words = this.#words;
    const source = from.i32;
    const last = (end - 1) >>> 2;
    for (let i = start >>> 2, to = at >>> 2; i <= last; i++, to++) words[to] = source[i] as number;
    return new Uint8Array(this.#buffer, at + (start & 3), length);
  }

  #renew(): void {
    this.#buffer = new ArrayBuffer(SLAB_BYTES);
    this.#bytes = new Uint8Array(this.#buffer);
    this.#words = new Int32Array(this.#buffer);
    this.#at = 0;
  }
}
