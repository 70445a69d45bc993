/**
 * The order of keys, implemented a second time from its definition, to test the encoded order against.
 *
 * Invariant: nothing here is shared with the codec.
 */

import type { Key } from '../../../js/src/types.ts';

function rank(key: Key): number {
  if (key instanceof Uint8Array) return 0;
  if (typeof key === 'string') return 1;
  if (typeof key === 'number') return 2;
  if (typeof key === 'bigint') return 3;
  if (typeof key === 'boolean') return 4;
  return key instanceof Date ? 5 : 6;
}

function compareLists<T>(a: ArrayLike<T>, b: ArrayLike<T>, compare: (a: T, b: T) => number): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = compare(a[i] as T, b[i] as T);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const ordinal = (a: number | bigint, b: number | bigint): number => (a < b ? -1 : a > b ? 1 : 0);

/** Negative, zero or positive, as `a` sorts before, with or after `b`. */
export function compareKeys(a: Key, b: Key): number {
  const ranks = rank(a) - rank(b);
  if (ranks !== 0) return ranks;
  if (a instanceof Uint8Array) return compareLists(a, b as Uint8Array, ordinal);
  if (a instanceof Date) return ordinal(a.getTime(), (b as Date).getTime());
  if (typeof a === 'string') {
    const points = (text: string): number[] => Array.from(text, (point) => point.codePointAt(0) as number);
    return compareLists(points(a), points(b as string), ordinal);
  }
  if (typeof a === 'object') return compareLists(a, b as readonly Key[], compareKeys);
  return ordinal(Number(a === true) || (a as number | bigint), Number(b === true) || (b as number | bigint));
}
