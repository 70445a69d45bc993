/**
 * How the keys of calls are drawn: evenly, in order, or with favourites.
 *
 * Zipfian ranks follow Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994), as YCSB draws
 * them; rank 0 is drawn most often. Ranks are scattered over the keys by a permutation, so that favourites do not lie
 * beside one another (YCSB's "scrambled", without its collisions).
 *
 * Invariant: what is drawn follows from the seed alone.
 */

import { at, Random } from './generator.ts';

/** YCSB's constant: the hottest of 100,000 keys gets about 8% of the calls. */
const THETA = 0.99;

export function shuffled(count: number, random: Random): Uint32Array {
  const numbers = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = random.below(i + 1);
    const other = at(numbers, j);
    numbers[j] = at(numbers, i);
    numbers[i] = other;
  }
  return numbers;
}

function zeta(count: number): number {
  let sum = 0;
  for (let i = 1; i <= count; i++) sum += 1 / i ** THETA;
  return sum;
}

/** Draws ranks from 0 to `count` - 1; rank i comes up about (i + 1)^-THETA times as often as rank 0. */
export class Zipfian {
  readonly #zetaN: number;
  readonly #alpha: number;
  readonly #eta: number;
  readonly #second: number;

  constructor(
    private readonly count: number,
    private readonly random: Random,
  ) {
    this.#zetaN = zeta(count);
    this.#alpha = 1 / (1 - THETA);
    this.#second = 1 + 0.5 ** THETA;
    this.#eta = (1 - (2 / count) ** (1 - THETA)) / (1 - this.#second / this.#zetaN);
  }

  next(): number {
    const u = this.random.next() / 0x1_0000_0000;
    const uz = u * this.#zetaN;
    if (uz < 1) return 0;
    if (uz < this.#second) return Math.min(1, this.count - 1);
    return Math.min(this.count - 1, Math.floor(this.count * (this.#eta * u - this.#eta + 1) ** this.#alpha));
  }
}

export type Order = 'uniform' | 'zipfian' | 'latest' | 'sequential';

/**
 * A function that draws the number of a key below `count`, or, for `latest`, below the count that it is given.
 * `sequential` orders are not drawn, and have no such function.
 */
export function drawer(order: Exclude<Order, 'sequential'>, count: number, random: Random): (there: number) => number {
  if (order === 'uniform') return (there) => random.below(there);
  const zipfian = new Zipfian(count, random);
  if (order === 'latest') return (there) => Math.max(0, there - 1 - zipfian.next());
  const scattered = shuffled(count, new Random(0x5ca77e8));
  return () => at(scattered, zipfian.next());
}
