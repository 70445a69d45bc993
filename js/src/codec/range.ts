/**
 * Ranges of keys as ranges of bytes.
 *
 * Invariant: a key lies in the range exactly when its bytes lie between the bounds. A prefix becomes two bounds: its
 * own bytes and its successor (the smallest bytes above everything that begins with them).
 */

import { invalid } from '../errors.ts';
import { checkOptions, RANGE } from '../options.ts';
import type { Key, KeyRange } from '../types.ts';
import { afterText } from './after-text.ts';
import { isBytes } from './intrinsics.ts';
import type { KeyFormat } from './key-format.ts';
import { encodePlain } from './keys.ts';
import { KEY_BYTES_MAX, plainKey } from './plain-key.ts';

/** One end of a range. */
export interface Bound {
  readonly key: Uint8Array;
  readonly exclusive: boolean;
}

/** A range of encoded keys; an absent bound is open. */
export interface ByteRange {
  readonly lower: Bound | undefined;
  readonly upper: Bound | undefined;
  /** True when no key can lie between the bounds. */
  readonly empty: boolean;
}

/** Compares bytes in unsigned order, as the engine does. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/**
 * The byte range of a key range; without bounds, all keys of the format. Throws `VARVE_INVALID_ARGUMENT` for two lower or two upper
 * bounds, for a prefix that is not an array, string or Uint8Array, and for an option that is not in `known`; `VARVE_INVALID_KEY` for a
 * bound that is not a key.
 */
export function encodeRange<K>(
  range: KeyRange<K>,
  keys: KeyFormat<K>,
  known: Readonly<Record<string, 1>> = RANGE,
): ByteRange {
  checkOptions(range, known);
  const { gt, gte, lt, lte, prefix } = range;
  if (gt !== undefined && gte !== undefined) throw invalid('A range takes gt or gte, not both.');
  if (lt !== undefined && lte !== undefined) throw invalid('A range takes lt or lte, not both.');
  let lower = bound(gt, gte, keys);
  let upper = bound(lt, lte, keys);
  const [from, to] = prefix === undefined ? wholeOf(keys) : prefixBounds(prefix, keys);
  if (from !== undefined && (lower === undefined || compareBytes(lower.key, from) < 0))
    lower = { key: from, exclusive: false };
  if (to !== undefined && (upper === undefined || compareBytes(upper.key, to) >= 0))
    upper = { key: to, exclusive: true };
  return { lower, upper, empty: isEmpty(lower, upper) };
}

/** The part of a range from `key` on, or up to it in reverse. */
export function rangeFrom({ lower, upper }: ByteRange, key: Uint8Array, reverse: boolean | undefined): ByteRange {
  const at = { key, exclusive: false };
  const [from, to] = reverse
    ? [lower, upper === undefined || compareBytes(upper.key, key) > 0 ? at : upper]
    : [lower === undefined || compareBytes(lower.key, key) < 0 ? at : lower, upper];
  return { lower: from, upper: to, empty: isEmpty(from, to) };
}

/** The half-open form that range deletion takes: start inclusive, end exclusive; no bytes mean an open side. */
export function halfOpen(range: ByteRange): { start: Uint8Array; end: Uint8Array } {
  const { lower, upper } = range;
  return {
    start: lower === undefined ? NOTHING : lower.exclusive ? justAfter(lower.key) : lower.key,
    end: upper === undefined ? NOTHING : upper.exclusive ? upper.key : justAfter(upper.key),
  };
}

/**
 * The half-open form of a range to delete; undefined when no key can be in it. Throws `VARVE_INVALID_ARGUMENT` for a range
 * without bounds, because a misspelt or undefined bound would cause it: to delete everything there is a method with its own name.
 */
export function encodeDeletion<K>(
  range: KeyRange<K>,
  keys: KeyFormat<K>,
): { start: Uint8Array; end: Uint8Array } | undefined {
  const bytes = encodeRange(range, keys);
  const { gt, gte, lt, lte, prefix } = range;
  if ([gt, gte, lt, lte, prefix].every((bound) => bound === undefined)) {
    throw invalid('deleteRange takes a bound or a prefix; clear() deletes everything.');
  }
  return bytes.empty ? undefined : halfOpen(bytes);
}

const NOTHING = new Uint8Array(0);

function bound<K>(exclusive: K | undefined, inclusive: K | undefined, keys: KeyFormat<K>): Bound | undefined {
  const isExclusive = exclusive !== undefined;
  const key = isExclusive ? exclusive : inclusive;
  return key === undefined ? undefined : { key: keys.encode(key), exclusive: isExclusive };
}

type Bounds = readonly [from: Uint8Array, to: Uint8Array];

/** The bounds of all keys of a format; none for those of a whole store. */
function wholeOf<K>({ first }: KeyFormat<K>): Bounds | [] {
  return first.length === 0 ? [] : [first, successor(first)];
}

/**
 * The bounds of the keys with a prefix. In a view a string or bytes are an element of an array. Then both bounds are keys, so that a
 * range to delete can be reported as a range of keys.
 */
function prefixBounds<K>(prefix: unknown, keys: KeyFormat<K>): Bounds {
  const key = plainKey(prefix as Key);
  const within = keys.prefix;
  const isText = typeof key === 'string' || isBytes(key);
  if (!isText && !Array.isArray(key)) throw invalid('A prefix is an array, a string or a Uint8Array.');
  if (isText && within.length > 0) return [encodePlain([...within, key]), encodePlain([...within, afterText(key)])];
  const bytes = encodePlain(Array.isArray(key) ? [...within, ...key] : key);
  return [bytes, successor(bytes)];
}

/** The smallest bytes above everything that begins with `bytes`. A type byte is never FF, so such bytes always exist. */
export function successor(bytes: Uint8Array): Uint8Array {
  let length = bytes.length;
  while (bytes[length - 1] === 0xff) length--;
  const next = bytes.slice(0, length);
  next[length - 1] = (next[length - 1] as number) + 1;
  return next;
}

/** The smallest bytes above these that a key can have. */
export function justAfter(key: Uint8Array): Uint8Array {
  if (key.length >= KEY_BYTES_MAX) return successor(key);
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

function isEmpty(lower: Bound | undefined, upper: Bound | undefined): boolean {
  if (lower === undefined || upper === undefined) return false;
  const order = compareBytes(lower.key, upper.key);
  return order > 0 || (order === 0 && (lower.exclusive || upper.exclusive));
}
