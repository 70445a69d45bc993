/**
 * The content that the store must have: the version of every key that was last acknowledged.
 *
 * Invariant: a key has one writer at a time, the connection that owns it, so its last acknowledged version is known. Where a
 * write was never answered (it failed, and so the run fails), the key is in doubt: it is neither written nor judged any more.
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
const SEED = 0x1ed6e7;

const random = new Random(SEED);
const letter = (): string => String.fromCharCode(97 + random.below(26));
const texts = Array.from({ length: TEXTS }, () => Array.from({ length: TEXT_CHARS }, letter).join(''));

/** The key of a number; keys sort as their numbers do. */
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

/** The last acknowledged state of every key of a store. */
export class Ledger {
  /** Keys that are there from the beginning: the numbers below it. */
  readonly base: number;
  readonly #versions: number[];
  /** The sequence of the entry where a receipt gave it, 0 elsewhere. */
  readonly #sequences: number[] = [];
  readonly #doubtful = new Set<number>();
  #last_version = 1;

  /** Of a store into which version 1 of the first `base` keys is loaded. */
  constructor(base: number) {
    this.base = base;
    this.#versions = new Array<number>(base).fill(1);
  }

  /** All numbers that were ever written are below it. */
  get end(): number {
    return this.#versions.length;
  }

  /** The version that the store must have; 0 when the key must be absent. */
  version(number: number): number {
    return this.#versions[number] ?? 0;
  }

  /** The sequence that the entry is known to have, else 0. */
  sequence(number: number): number {
    return this.#sequences[number] ?? 0;
  }

  /** A new value for a key: its version is no other write's. */
  next(number: number): Write {
    this.#last_version++;
    return { number, version: this.#last_version };
  }

  /** Notes that these writes were acknowledged, a single one perhaps with its sequence. */
  acknowledge(writes: readonly Write[], sequence = 0): void {
    for (const { number, version } of writes) {
      while (this.#versions.length <= number) this.#versions.push(0);
      this.#versions[number] = version;
      this.#sequences[number] = sequence;
    }
  }

  /** Notes that these writes may have been applied or not. */
  doubt(writes: readonly Write[]): void {
    for (const { number } of writes) this.#doubtful.add(number);
  }

  isDoubtful(number: number): boolean {
    return this.#doubtful.has(number);
  }

  /** The keys of the base that are absent now. */
  missing(): number[] {
    const base = Array.from({ length: this.base }, (_, number) => number);
    return base.filter((number) => this.version(number) === 0 && !this.isDoubtful(number));
  }

  /** How many keys must be there. */
  count(): number {
    return this.#versions.filter((version, number) => version !== 0 && !this.isDoubtful(number)).length;
  }

  /** Whether an entry is exactly what must be there. */
  matches(key: string, value: unknown): boolean {
    const number = numberOf(key);
    const version = this.version(number);
    return version !== 0 && JSON.stringify(value) === valueText({ number, version });
  }
}
