/**
 * Stretches of bytes: which parts of a chunk are known, or were written.
 *
 * Invariant: sorted, apart from one another, none empty. A chunk has one or two of them nearly always: logs and tables are
 * written from front to back.
 */

/** A sorted list of `[from, to)`. */
export class Spans {
  /** `from, to, from, to, ...` */
  readonly #ends: number[] = [];

  /** How many bytes all spans have together. */
  get bytes(): number {
    let bytes = 0;
    for (let i = 0; i < this.#ends.length; i += 2) bytes += (this.#ends[i + 1] ?? 0) - (this.#ends[i] ?? 0);
    return bytes;
  }

  /** Adds `[from, to)`, joining what it touches. */
  add(from: number, to: number): void {
    const ends = this.#ends;
    const last = ends.length - 1;
    if (last >= 0 && from === ends[last]) {
      ends[last] = to;
      return;
    }
    let start = 0;
    while (start < ends.length && (ends[start + 1] as number) < from) start += 2;
    let end = start;
    let [low, high] = [from, to];
    while (end < ends.length && (ends[end] as number) <= to) {
      low = Math.min(low, ends[end] as number);
      high = Math.max(high, ends[end + 1] as number);
      end += 2;
    }
    ends.splice(start, end - start, low, high);
  }

  /** Whether all of `[from, to)` is in one of them. */
  cover(from: number, to: number): boolean {
    for (let i = 0; i < this.#ends.length; i += 2) {
      if ((this.#ends[i] as number) <= from && to <= (this.#ends[i + 1] as number)) return true;
    }
    return from >= to;
  }

  /** Calls back with each span. */
  each(call: (from: number, to: number) => void): void {
    for (let i = 0; i < this.#ends.length; i += 2) call(this.#ends[i] as number, this.#ends[i + 1] as number);
  }

  /** Another list with the same stretches. */
  copy(): Spans {
    const copy = new Spans();
    copy.#ends.push(...this.#ends);
    return copy;
  }

  /** Removes all of them. */
  clear(): void {
    this.#ends.length = 0;
  }
}
