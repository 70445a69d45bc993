/**
 * The content that the store must have: the version of every key that was last acknowledged, and which connection owns it.
 *
 * Invariant: a key has one writer at a time, the connection that owns it: the keys of the connections of a row are disjoint, the
 * numbers that are `connection` modulo `connections`. A write that was never answered has failed the run.
 */

import { Random } from '../../core/generator.ts';

/** A write of one version to one key; version 0 is a delete. */
export interface Write {
  readonly number: number;
  readonly version: number;
}

const TEXTS = 64;
const TEXT_CHARS = 48;
const DIGITS = 9;

const random = new Random(0x1ed6e7);
const letter = (): string => String.fromCharCode(97 + random.below(26));
const texts = Array.from({ length: TEXTS }, () => Array.from({ length: TEXT_CHARS }, letter).join(''));

export function keyOf(number: number): string {
  return `k${String(number).padStart(DIGITS, '0')}`;
}

export function numberOf(key: string): number {
  return Number(key.slice(1));
}

/** The value of a version of a key, as JSON text: about 90 bytes, and none like another. */
export function valueText({ number, version }: Write): string {
  return `{"id":${number},"version":${version},"text":"${texts[(number * 31 + version) % TEXTS]}"}`;
}

export class Ledger {
  readonly #versions: number[];
  /** The sequence of the entry where a receipt gave it, 0 elsewhere. */
  readonly #sequences: number[] = [];
  #lastVersion = 1;

  /** Of a store into which version 1 of the first `base` keys is loaded. */
  constructor(readonly base: number) {
    this.#versions = new Array<number>(base).fill(1);
  }

  get end(): number {
    return this.#versions.length;
  }

  /** The version that the store must have; 0 when the key must be absent. */
  version(number: number): number {
    return this.#versions[number] ?? 0;
  }

  sequence(number: number): number {
    return this.#sequences[number] ?? 0;
  }

  next(number: number): Write {
    this.#lastVersion++;
    return { number, version: this.#lastVersion };
  }

  /** Notes that these writes were acknowledged, a single one perhaps with its sequence. */
  acknowledge(writes: readonly Write[], sequence = 0): void {
    for (const { number, version } of writes) {
      while (this.#versions.length <= number) this.#versions.push(0);
      this.#versions[number] = version;
      this.#sequences[number] = sequence;
    }
  }

  missing(): number[] {
    return Array.from({ length: this.base }, (_, number) => number).filter((number) => this.version(number) === 0);
  }

  count(): number {
    return this.#versions.filter((version) => version !== 0).length;
  }

  matches(key: string, value: unknown): boolean {
    const number = numberOf(key);
    const version = this.version(number);
    return version !== 0 && JSON.stringify(value) === valueText({ number, version });
  }
}

/** The keys that one connection of a row may write, and its own random numbers. */
export class Share {
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

  any(): number {
    return this.several(1)[0] ?? 0;
  }

  hot(): number {
    return this.random.below(Math.min(10, this.#own)) * this.connections + this.connection;
  }

  /** Different keys of the base, as many as asked for if there are so many: own neighbours from a random one on. */
  several(count: number): number[] {
    const first = this.random.below(this.#own);
    return Array.from({ length: Math.min(count, this.#own) }, (_, i) => {
      return ((first + i) % this.#own) * this.connections + this.connection;
    });
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
}
