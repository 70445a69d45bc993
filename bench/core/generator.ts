/**
 * The data that is written: seeded keys and values, the same in every run, engine and browser.
 *
 * Invariant: the value of an entry is one of a fixed pool, chosen by a number that the bench remembers per key. So
 * nothing is generated while a clock runs, and what a read delivers can be checked to the byte afterwards. Every value
 * of the pool has a buffer of its own, because IndexedDB clones the whole buffer that a view lies in.
 */

/** A key of the bench: ASCII characters, or a tuple of a string and a number. */
export type Key = string | readonly [string, number];

/** How the keys of a dataset look and in which order they are numbered. */
export type KeyKind = 'sequential' | 'random' | 'tuple';

export const KEY_CHARS = 16;
/** Values of a pool hold this many bytes together at most, so that large values do not fill the memory. */
const POOL_BYTES_MAX = 4 << 20;
const POOL_VALUES_MAX = 32_768;
const SEED = 0x5eed_7a12;

interface DatasetChoice {
  /** Characters of a string key, at least 12. */
  readonly keyBytes?: number | undefined;
  /** Other keys and other values. Default 1. */
  readonly seed?: number | undefined;
}

/** A small seeded generator of 32-bit numbers (splitmix32): fast, and the same everywhere. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x9e37_79b9) >>> 0;
    return mix(this.#state);
  }

  below(bound: number): number {
    return Math.floor((this.next() / 0x1_0000_0000) * bound);
  }
}

/** A seed of the bench, changed by the plan's seed; seed 1 changes nothing. */
export function salted(seed: number, plan = 1): number {
  return (seed ^ mix(plan - 1)) >>> 0;
}

/** A bijection over 32-bit numbers: different numbers stay different, neighbours end up far apart. */
export function mix(number: number): number {
  let x = number >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0_aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a_2d97);
  return (x ^ (x >>> 15)) >>> 0;
}

/** The keys of a suite, in the order of their numbers, and the pool that its values come from. */
export interface Dataset {
  readonly kind: KeyKind;
  readonly keys: readonly Key[];
  /** As many keys that never are, spread among the others; made when they are first asked for. */
  readonly absent: readonly Key[];
  readonly sorted: Uint32Array;
  readonly pool: readonly Uint8Array[];
  readonly keyBytes: number;
  readonly valueBytes: number;
}

/** Makes the dataset of `entries` keys of this kind with values of `valueBytes`. The same choices make the same dataset. */
export function makeDataset(
  kind: KeyKind,
  entries: number,
  valueBytes: number,
  { keyBytes = KEY_CHARS, seed = 1 }: DatasetChoice = {},
): Dataset {
  const shape = { kind, chars: keyBytes, seed: salted(SEED, seed) };
  const keys: Key[] = [];
  for (let i = 0; i < entries; i++) keys.push(makeKey(shape, i));
  let absent: Key[] | undefined;
  return {
    kind,
    keys,
    get absent() {
      absent ??= keys.map((_, i) => makeAbsentKey(shape, i, entries));
      return absent;
    },
    sorted: sortedNumbers(kind, keys),
    pool: poolOf(valueBytes, seed),
    keyBytes,
    valueBytes,
  };
}

interface Shape {
  readonly kind: KeyKind;
  readonly chars: number;
  readonly seed: number;
}

function makeKey(shape: Shape, number: number): Key {
  if (shape.kind === 'tuple') return [flat(`note-${(number % 8).toString().padStart(3, '0')}`), number];
  if (shape.kind === 'random') return randomKey(shape, number);
  return flat(`key-${number.toString().padStart(shape.chars - 4, '0')}`);
}

function makeAbsentKey(shape: Shape, number: number, entries: number): Key {
  if (shape.kind === 'tuple') return [flat(`note-${(number % 8).toString().padStart(3, '0')}`), number + 0.5];
  if (shape.kind === 'random') return randomKey(shape, entries + number);
  return flat(`key-${number.toString().padStart(shape.chars - 5, '0')}+`);
}

/** Hexadecimal digits; the first eight differ between any two numbers. */
function randomKey({ chars, seed }: Shape, number: number): string {
  let word = mix(number ^ seed);
  let digits = '';
  while (digits.length < chars) {
    digits += word.toString(16).padStart(8, '0');
    word = mix(word ^ 0x9e37_79b9);
  }
  return flat(digits.slice(0, chars));
}

/**
 * The string as one that a program reads from JSON: one run of characters on the heap of the engine. A string made by
 * joining would be flattened by its first reader, inside a measurement; the characters of one from a TextDecoder lie
 * outside of the heap, where reading them costs everybody more than finding a key.
 */
function flat(text: string): string {
  return JSON.parse(JSON.stringify(text));
}

function sortedNumbers(kind: KeyKind, keys: readonly Key[]): Uint32Array {
  const numbers = Uint32Array.from(keys, (_, i) => i);
  return kind === 'sequential' ? numbers : numbers.sort((a, b) => compareKeys(at(keys, a), at(keys, b)));
}

export function compareKeys(a: Key, b: Key): number {
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  const [textA, numberA] = typeof a === 'string' ? [a, 0] : a;
  const [textB, numberB] = typeof b === 'string' ? [b, 0] : b;
  if (textA !== textB) return textA < textB ? -1 : 1;
  return numberA - numberB;
}

const pools = new Map<string, readonly Uint8Array[]>();

/** The pool of values of this size: made once, since it is the same for every dataset. */
function poolOf(valueBytes: number, seed: number): readonly Uint8Array[] {
  const name = `${valueBytes} ${seed}`;
  const known = pools.get(name);
  if (known !== undefined) return known;
  const made = makePool(valueBytes, seed);
  pools.set(name, made);
  return made;
}

function makePool(valueBytes: number, seed: number): Uint8Array[] {
  const random = new Random(salted(SEED, seed) ^ valueBytes);
  const count = Math.max(64, Math.min(POOL_VALUES_MAX, Math.floor(POOL_BYTES_MAX / valueBytes)));
  return Array.from({ length: count }, () => {
    const value = new Uint8Array(valueBytes);
    for (let i = 0; i < valueBytes; i++) value[i] = random.next();
    return value;
  });
}

export function at<T>(list: ArrayLike<T>, index: number): T {
  const item = list[index];
  if (item === undefined) throw new RangeError(`No element ${index} in a list of ${list.length}.`);
  return item;
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
