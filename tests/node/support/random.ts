/**
 * Repeatable randomness for property tests: the same seed gives the same keys and values.
 *
 * Invariant: a failing case is named by its seed alone.
 */

import type { Key } from '../../../js/src/types.ts';

/** A small generator (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 to below 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 to below `count`. */
  below(count: number): number {
    return Math.floor(this.fraction() * count);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  bytes(lengthMax: number): Uint8Array {
    // Few different bytes, so that equal beginnings, zeros and 0xff are common.
    return Uint8Array.from({ length: this.below(lengthMax + 1) }, () => this.pick([0, 0, 1, 2, 97, 0xfe, 0xff, 0xff]));
  }

  text(lengthMax: number): string {
    const units = ['', '\0', '\u0001', 'a', 'b', 'ab', '\u007f', '\u0080', 'é', '\uffff', '\ufeff', '😀', '𐀀', '日本'];
    let text = '';
    for (let i = this.below(lengthMax + 1); i > 0; i--) text += this.pick(units);
    return text;
  }

  number(): number {
    const edge = [
      0,
      1,
      -1,
      0.5,
      -0.5,
      255,
      256,
      2 ** 31,
      -(2 ** 31),
      2 ** 53,
      -(2 ** 53),
      1e308,
      -1e308,
      5e-324,
      -5e-324,
    ];
    const roll = this.below(4);
    if (roll === 0) return this.pick([...edge, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);
    if (roll === 1) return this.below(1000) - 500;
    return (this.fraction() - 0.5) * 10 ** this.below(20);
  }

  bigint(): bigint {
    const size = this.pick([0, 1, 2, 7, 8, 9, 20]);
    let value = 0n;
    for (let i = 0; i < size; i++) value = value * 256n + BigInt(this.pick([0, 1, 127, 128, 255]));
    return this.below(2) === 0 ? value : -value;
  }

  key(depth = 0): Key {
    switch (this.below(depth < 3 ? 7 : 6)) {
      case 0:
        return this.bytes(5);
      case 1:
        return this.text(4);
      case 2:
        return this.number();
      case 3:
        return this.bigint();
      case 4:
        return this.below(2) === 0;
      case 5:
        return new Date(this.below(2 ** 31) * 1000 - 2 ** 40);
      default:
        return Array.from({ length: this.below(4) }, () => this.key(depth + 1));
    }
  }
}
