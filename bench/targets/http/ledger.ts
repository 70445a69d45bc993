/**
 * The content that the store must have: the version of every key that was last acknowledged.
 *
 * Invariant: a key has one writer at a time, the connection that owns it, so its last acknowledged version is known. Where a
 * write was never answered (it failed), both outcomes are possible until `resolve` has seen the store.
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
  readonly #doubts = new Map<number, number[]>();
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
    for (const { number, version } of writes) {
      const possible = this.#doubts.get(number) ?? [this.version(number)];
      this.#doubts.set(number, [...possible, version]);
    }
  }

  /** Whether it is not known what the store has of a key; such a key is neither written nor judged before `resolve`. */
  isDoubtful(number: number): boolean {
    return this.#doubts.has(number);
  }

  get doubtful(): number[] {
    return [...this.#doubts.keys()];
  }

  /** Takes what the store has of a key in doubt (its value as JSON, undefined: absent); false when it can be neither outcome. */
  resolve(number: number, found: string | undefined): boolean {
    const possible = this.#doubts.get(number) ?? [this.version(number)];
    const version = possible.find((one) => (one === 0 ? undefined : valueText({ number, version: one })) === found);
    this.#doubts.delete(number);
    if (version === undefined) return false;
    this.acknowledge([{ number, version }]);
    return true;
  }

  /** The keys of the base that are absent now. */
  missing(): number[] {
    const numbers: number[] = [];
    for (let number = 0; number < this.base; number++) if (this.version(number) === 0) numbers.push(number);
    return numbers;
  }

  count(): number {
    return this.#versions.reduce((count, version) => count + (version === 0 ? 0 : 1), 0);
  }

  /** Whether an entry is exactly what must be there. */
  matches(key: string, value: unknown): boolean {
    const number = numberOf(key);
    const version = this.version(number);
    return version !== 0 && JSON.stringify(value) === valueText({ number, version });
  }
}
