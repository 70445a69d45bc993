/**
 * Copies of values, cut from large buffers.
 *
 * V8 pays 250 to 1,100 ns for every new typed array over 64 bytes, because it allocates its memory off the heap; a view
 * of a buffer that exists costs a tenth. The price: a small value that is kept holds its whole slab.
 *
 * Invariant: a slab is only ever appended to, so what was handed out never changes.
 */

const SLAB_BYTES = 64 * 1024;
/** V8 keeps typed arrays up to this size on its heap: they are cheaper as copies of their own. */
const SMALL_BYTES = 64;
/** Larger values get a buffer of their own. */
const LARGE_BYTES = 8 * 1024;

/** Hands out copies. */
export class Slab {
  #bytes = new Uint8Array(0);
  #at = 0;

  /** A copy of `from[start..end]`. */
  copy(from: Uint8Array, start: number, end: number): Uint8Array {
    const length = end - start;
    if (length <= SMALL_BYTES || length > LARGE_BYTES) return from.slice(start, end);
    if (this.#at + length > this.#bytes.length) {
      this.#bytes = new Uint8Array(SLAB_BYTES);
      this.#at = 0;
    }
    const at = this.#at;
    this.#bytes.set(from.subarray(start, end), at);
    this.#at = at + length;
    return this.#bytes.subarray(at, this.#at);
  }
}
