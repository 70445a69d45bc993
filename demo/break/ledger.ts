// The acknowledged writes, to be compared with the content of a store.
// Invariant: an entry is noted when its write has resolved, never before; the value of a key follows from the key.

import type { Store } from 'varve';

/** Entries of an experiment. */
export type Entries = Store<number, string>;

/** How the content of a store compares with the acknowledged writes. */
export interface Audit {
  /** Acknowledged entries that are there, with their values. */
  readonly kept: number;
  /** Keys that were acknowledged and are not there, or have another value. */
  readonly missing: readonly number[];
  /** Keys that are there although no write of them was acknowledged. */
  readonly extra: readonly number[];
}

export class Ledger {
  readonly #acknowledged = new Set<number>();
  readonly #bytes: number;

  /** @param bytes of each value, about */
  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  get size(): number {
    return this.#acknowledged.size;
  }

  /** The value of a key: text that does not compress, so that a store takes the expected room. */
  value(key: number): string {
    let text = `entry ${key}: `;
    let state = Math.imul(key + 1, 0x9e37_79b1);
    while (text.length < this.#bytes) {
      // Marsaglia's xorshift.
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      text += (state >>> 0).toString(36);
    }
    return text.slice(0, this.#bytes);
  }

  /** A write of this key was acknowledged. */
  note(key: number): void {
    this.#acknowledged.add(key);
  }

  /** A delete of this key was acknowledged. */
  strike(key: number): void {
    this.#acknowledged.delete(key);
  }

  /** Compares the whole content of a store. */
  async audit(store: Entries): Promise<Audit> {
    const found = new Set<number>();
    const extra: number[] = [];
    for await (const [key, value] of store.entries()) {
      if (!this.#acknowledged.has(key)) extra.push(key);
      else if (value === this.value(key)) found.add(key);
    }
    const missing = [...this.#acknowledged].filter((key) => !found.has(key));
    return { kept: found.size, missing, extra };
  }
}
