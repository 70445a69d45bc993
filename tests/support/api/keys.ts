// The keys that histories use, their order, and the keys in a range: derived from the documentation of keys, without the tested code.

import type { Key, KeyRange } from 'varve';

/** The one key that a history writes to notify followers. */
export const MARKER: Key = ['k', 'marker'];

/** Keys of every type, all below `['k']`, and among them keys that begin with other keys. */
const SPECIAL: readonly Key[] = [
  new Uint8Array(0),
  Uint8Array.of(0),
  Uint8Array.of(0, 255),
  Uint8Array.of(255, 255),
  '',
  'a',
  'a\0',
  'ab',
  'é',
  '\u{1F600}',
  Number.NEGATIVE_INFINITY,
  -1.5,
  0,
  2 ** 53,
  -(2n ** 70n),
  0n,
  7n,
  false,
  true,
  new Date(-1),
  new Date(0),
  [],
  ['a'],
  ['a', 1],
];
const NUMBERED = 200;

/** All keys of the part of a store that single operations work on. */
export const KEYS: readonly Key[] = [
  ...SPECIAL.map((key): Key => ['k', key]),
  ['k', 'a', 1],
  MARKER,
  ...Array.from({ length: NUMBERED }, (_, i): Key => ['k', 100 + i]),
];

/** Where the numbered keys begin. */
export const FIRST_NUMBERED = KEYS.length - NUMBERED;

/** Prefixes from which ranges are made, all within `['k']`. */
export const PREFIXES: readonly (readonly Key[])[] = [
  ['k'],
  ['k', 'a'],
  ['k', ['a']],
  ['k', Uint8Array.of(0)],
  ['k', 150],
];

function rankOf(key: Key): number {
  if (key instanceof Uint8Array) return 0;
  const rank = ['string', 'number', 'bigint', 'boolean'].indexOf(typeof key);
  if (rank >= 0) return rank + 1;
  return key instanceof Date ? 5 : 6;
}

function byElements<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compare(a[i] as T, b[i] as T);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const points = (text: string): number[] => [...text].map((char) => char.codePointAt(0) as number);

/** The order of keys. */
export function compareKeys(a: Key, b: Key): number {
  const rank = rankOf(a);
  if (rank !== rankOf(b)) return rank - rankOf(b);
  if (a instanceof Uint8Array) return byElements([...a], [...(b as Uint8Array)], (x, y) => x - y);
  if (typeof a === 'string') return byElements(points(a), points(b as string), (x, y) => x - y);
  if (Array.isArray(a)) return byElements(a as readonly Key[], b as readonly Key[], compareKeys);
  const [x, y] = [a.valueOf() as number, b.valueOf() as number];
  return x < y ? -1 : Number(x > y);
}

function startsWith(key: Key, prefix: string | Uint8Array | readonly Key[]): boolean {
  if (Array.isArray(prefix)) {
    return Array.isArray(key) && key.length >= prefix.length && compareKeys(key.slice(0, prefix.length), prefix) === 0;
  }
  if (typeof prefix === 'string') return typeof key === 'string' && key.startsWith(prefix);
  return key instanceof Uint8Array && compareKeys(key.slice(0, prefix.length), prefix as Uint8Array) === 0;
}

/** Whether a key lies in a range. */
export function isIn(key: Key, { gt, gte, lt, lte, prefix }: KeyRange): boolean {
  if (gt !== undefined && compareKeys(key, gt) <= 0) return false;
  if (gte !== undefined && compareKeys(key, gte) < 0) return false;
  if (lt !== undefined && compareKeys(key, lt) >= 0) return false;
  if (lte !== undefined && compareKeys(key, lte) > 0) return false;
  return prefix === undefined || startsWith(key, prefix);
}
