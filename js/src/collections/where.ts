/**
 * Turns a caller's conditions into a range of the store's keys.
 *
 * Invariant: a range contains the entries of exactly the values asked for, whichever keys follow the values in their entries. Its ends
 * are values, the string after a value, or a value followed by `TOP`, so they are correct for entries with and without a key after the
 * value.
 */

import { isBytes } from '../codec/intrinsics.ts';
import { invalid } from '../errors.ts';
import { checkLimit, checkOptions, isRange, type Known, SCAN } from '../options.ts';
import type { Key, KeyRange } from '../types.ts';
import { afterPrefix, checkKey, compareKeys, TOP } from './key.ts';

/** The conditions of a query, without their exact types. */
export interface LooseWhere {
  readonly after?: object | undefined;
  readonly eq?: Key | undefined;
  readonly gt?: Key | undefined;
  readonly gte?: Key | undefined;
  readonly lt?: Key | undefined;
  readonly lte?: Key | undefined;
  readonly prefix?: string | Uint8Array | readonly Key[] | undefined;
  readonly reverse?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Conditions on values. */
export const VALUES: Known<Omit<LooseWhere, 'after'>> = { eq: 1, ...SCAN };
/** Conditions on documents. */
const DOCUMENTS: Known<LooseWhere> = { ...VALUES, after: 1 };

/**
 * The conditions of a query, with copies of keys that nobody else can change. A plain value stands for itself. Throws
 * `VARVE_INVALID_ARGUMENT` for invalid conditions.
 */
export function whereOf(target: unknown, known: Readonly<Record<string, 1>> = DOCUMENTS): LooseWhere {
  if (target === undefined) return {};
  if (!isRange<unknown, LooseWhere>(target, undefined)) return { eq: checkKey(target, 'The wanted value') };
  const where = target as LooseWhere;
  checkOptions(where, known);
  const { after, eq, gt, gte, lt, lte, prefix, reverse, limit, signal } = where;
  if ((gt !== undefined && gte !== undefined) || (lt !== undefined && lte !== undefined))
    throw invalid('A range takes gt or gte, and lt or lte, not both.');
  if (eq !== undefined && [gt, gte, lt, lte, prefix].some((bound) => bound !== undefined))
    throw invalid('eq is exactly one value: leave out the other bounds.');
  checkLimit(limit);
  const given = Object.entries({ eq, gt, gte, lt, lte, prefix }).filter(([, bound]) => bound !== undefined);
  const bounds = Object.fromEntries(given.map(([field, bound]) => [field, checkKey(bound, `The bound ${field}`)]));
  const { prefix: first = '' } = bounds;
  if (typeof first !== 'string' && !Array.isArray(first) && !isBytes(first))
    throw invalid('A prefix is a string, a Uint8Array or an array.');
  if (after !== undefined && (typeof after !== 'object' || after === null)) throw invalid('after is a document.');
  return { ...bounds, after, reverse, limit, signal };
}

/** A range of store keys: from `gte` or after `gt`, and below `lt`. */
export interface PlaceRange extends Pick<KeyRange<Key>, 'prefix' | 'gt'> {
  readonly gte: Key | undefined;
  readonly lt: Key | undefined;
}

/** The range of store keys that begin with `base`, followed by a wanted value. */
export function rangeOf(base: readonly Key[], { eq, gt, gte, lt, lte, prefix }: LooseWhere): PlaceRange {
  const at = (value: Key): readonly Key[] => [...base, value];
  // The next string is longer by two bytes, as is the shortest entry with a key: so it can be a key wherever a value has entries.
  const after = (value: Key): Key => (typeof value === 'string' ? at(`${value}\0`) : [...at(value), TOP]);
  const from: Key[] = [];
  const to: Key[] = [];
  if (gte !== undefined) from.push(at(gte));
  if (gt !== undefined) from.push(after(gt));
  if (lte !== undefined) to.push(after(lte));
  if (lt !== undefined) to.push(at(lt));
  if (prefix !== undefined) {
    from.push(at(prefix));
    to.push(at(afterPrefix(prefix)));
  }
  from.sort(compareKeys);
  to.sort(compareKeys);
  return { gte: from.at(-1), lt: to[0], prefix: eq === undefined ? base : at(eq) };
}

/** The part of a range that a walk comes to after a place. */
export function rangeAfter(range: PlaceRange, place: readonly Key[], reverse: boolean | undefined): PlaceRange {
  const { gte, lt } = range;
  if (reverse) return lt === undefined || isBefore(place, lt) ? { ...range, lt: place } : range;
  return gte !== undefined && isBefore(place, gte) ? range : { ...range, gte: undefined, gt: place };
}

/** Of the places of a document, the first that a walk of the range comes to; the last one if all are before the range. */
export function firstIn(
  { gte, lt }: PlaceRange,
  places: readonly Key[],
  reverse: boolean | undefined,
): readonly Key[] | undefined {
  const sorted = [...places].sort(compareKeys);
  if (reverse) sorted.reverse();
  const isReached = (place: Key): boolean =>
    reverse ? lt === undefined || isBefore(place, lt) : gte === undefined || !isBefore(place, gte);
  return (sorted.find(isReached) ?? sorted.at(-1)) as readonly Key[] | undefined;
}

function isBefore(a: Key, b: Key): boolean {
  return compareKeys(a, b) < 0;
}
