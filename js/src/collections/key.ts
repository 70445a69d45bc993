/**
 * Keys as a collection uses them: whether a value is a key, which of two keys comes first, and a key that comes after all others.
 *
 * Invariant: `compareKeys` is the store's order, written a second time: comparing bytes would add the codec to the bundle, 3 KB. `TOP`
 * sorts after every key that `checkKey` accepts, alone and as an element of an array. Arrays sort last, so an array that is nested
 * deeper than any other sorts after all of them.
 */

import { afterText } from '../codec/after-text.ts';
import { bytesUnder, isBytes, timeOf } from '../codec/intrinsics.ts';
import { plainKey } from '../codec/plain-key.ts';
import { VarveError } from '../errors.ts';
import type { Key } from '../types.ts';

/** The deepest nesting of arrays in keys and index values. */
export const NESTING_MAX = 8;

/** Sorts after all other keys: an end for "everything that begins with ...". It is never stored. */
export const TOP: Key = nested(NESTING_MAX + 1);

const KINDS = ['bytes', 'string', 'number', 'bigint', 'boolean', 'date', 'array'] as const;
type Kind = (typeof KINDS)[number];

/** The kind of a key; undefined if the value is not a key. */
function kindOf(value: unknown): Kind | undefined {
  switch (typeof value) {
    case 'string':
    case 'bigint':
    case 'boolean':
      return typeof value as Kind;
    case 'number':
      return Number.isNaN(value) ? undefined : 'number';
    case 'object':
      if (Array.isArray(value)) return 'array';
      if (value === null) return undefined;
      return isBytes(value) ? 'bytes' : Number.isNaN(timeOf(value) ?? Number.NaN) ? undefined : 'date';
    default:
      return undefined;
  }
}

/** Returns a copy of a key, which nobody else can change. Throws `VARVE_INVALID_KEY`; the message begins with `what`. */
export function checkKey(value: unknown, what: string): Key {
  let cause: unknown;
  try {
    const key = copyOf(plainKey(value as Key), NESTING_MAX);
    if (key !== undefined) return key;
  } catch (error) {
    // A proxy, or a getter.
    cause = error;
  }
  throw new VarveError(
    'VARVE_INVALID_KEY',
    `${what} is no key: it must be a string, number (not NaN), bigint, boolean, Date, Uint8Array or an array of these, nested at most ${NESTING_MAX} deep.`,
    cause === undefined ? undefined : { cause },
  );
}

function copyOf(value: unknown, nesting: number): Key | undefined {
  switch (kindOf(value)) {
    case undefined:
      return undefined;
    case 'bytes':
      return bytesUnder(value as Uint8Array)?.slice();
    case 'date':
      return new Date(timeOf(value as Date) as number);
    case 'array': {
      const parts = nesting === 0 ? [undefined] : Array.from(value as unknown[], (part) => copyOf(part, nesting - 1));
      return parts.includes(undefined) ? undefined : (parts as Key[]);
    }
    default:
      return value as Key;
  }
}

/** Below 0, 0 or above 0, in the store's order of keys. */
export function compareKeys(a: Key, b: Key): number {
  const kind = kindOf(a) as Kind;
  const other = kindOf(b) as Kind;
  if (kind !== other) return KINDS.indexOf(kind) - KINDS.indexOf(other);
  if (kind === 'array') return compareLists(a as readonly Key[], b as readonly Key[], compareKeys);
  if (kind === 'bytes') return compareLists(a as Uint8Array, b as Uint8Array, (x, y) => x - y);
  // By code points, which is the order of UTF-8. JavaScript compares halves of surrogate pairs.
  if (kind === 'string') return compareLists(pointsOf(a as string), pointsOf(b as string), (x, y) => x - y);
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareLists<E>(a: ArrayLike<E>, b: ArrayLike<E>, compare: (x: E, y: E) => number): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const order = compare(a[i] as E, b[i] as E);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** A text that is the same for two keys if, and only if, they are equal. */
export function textOf(key: Key): string {
  if (typeof key === 'string') return JSON.stringify(key);
  const kind = kindOf(key);
  if (kind === 'array') return `[${(key as readonly Key[]).map(textOf).join()}]`;
  return `${kind}:${kind === 'date' ? (key as Date).getTime() : String(key)}`;
}

/** The lowest key after all keys that begin with this string, these bytes or these elements. */
export function afterPrefix(prefix: string | Uint8Array | readonly Key[]): Key {
  return Array.isArray(prefix) ? [...(prefix as readonly Key[]), TOP] : afterText(prefix as string | Uint8Array);
}

function pointsOf(text: string): number[] {
  return Array.from(text, (point) => point.codePointAt(0) as number);
}

function nested(depth: number): Key {
  return depth === 1 ? [] : [nested(depth - 1)];
}
