/**
 * The keys of one connection.
 *
 * Invariant: the keys of the connections of a row are disjoint: the numbers that are `connection` modulo `connections`.
 */

import { Random } from '../../core/generator.ts';
import type { Ledger } from './ledger.ts';

/** The keys that one connection of a row may write, and its own random numbers. */
export class Share {
  /** A share for each of so many connections. */
  static ofAll(ledger: Ledger, connections: number, seed: number): Share[] {
    return Array.from({ length: connections }, (_, i) => new Share(ledger, i, connections, seed));
  }

  readonly random: Random;
  readonly #own: number;
  #fresh: number;

  /** Throws when there are more connections than keys. */
  constructor(
    readonly ledger: Ledger,
    private readonly connection: number,
    private readonly connections: number,
    seed: number,
  ) {
    this.random = new Random(seed + connection * 7919);
    this.#own = Math.floor((ledger.base - 1 - connection) / connections) + 1;
    if (this.#own < 1) throw new RangeError(`${ledger.base} keys are too few for ${connections} connections.`);
    this.#fresh = Math.ceil(ledger.end / connections) * connections + connection;
  }

  owns(number: number): boolean {
    return number % this.connections === this.connection;
  }

  /** A key of the base, drawn at random. */
  any(): number {
    const [number] = this.several(1);
    if (number === undefined) throw new Error('Every key of a connection is in doubt: the server answers nobody.');
    return number;
  }

  /**
   * Different keys of the base, as many as asked for if there are so many: own neighbours from a random one on. A key in doubt is
   * passed over, since nobody knows what is right for it.
   */
  several(count: number): number[] {
    const first = this.random.below(this.#own);
    const numbers: number[] = [];
    for (let i = 0; i < this.#own && numbers.length < count; i++) {
      const number = this.#at((first + i) % this.#own);
      if (!this.ledger.isDoubtful(number)) numbers.push(number);
    }
    return numbers;
  }

  /** A key of the base that is there, if one is found near a random one. */
  present(): number | undefined {
    return this.several(100).find((number) => this.ledger.version(number) !== 0);
  }

  fresh(): number {
    const number = this.#fresh;
    this.#fresh += this.connections;
    return number;
  }

  #at(index: number): number {
    return index * this.connections + this.connection;
  }
}
