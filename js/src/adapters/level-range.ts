/** Ranges of a Level database as ranges of a view. */

import type { Key, KeyRange } from '../types.ts';

/** The bounds that abstract-level passes on: encoded keys. */
export type Bounds = { readonly [bound in 'gt' | 'gte' | 'lt' | 'lte']?: Uint8Array };

/** The first key that is bytes. Before it, a view has the key `[]`. */
const FIRST = new Uint8Array();

/**
 * The range of the view. As in all Level databases, `gte` and `lte` win over `gt` and `lt`. Without bounds it begins with the first key
 * that is bytes, and ends before the empty string, the first key behind them: so a database never sees other keys of its view.
 */
export function rangeOf({ gt, gte, lt, lte }: Bounds): KeyRange<Key> {
  return { ...(gt && !gte ? { gt } : { gte: gte ?? FIRST }), ...(lte ? { lte } : { lt: lt ?? '' }) };
}

/** The part of the bounds from `target` on, or up to it in reverse; undefined if they exclude `target`: then nothing is found. */
export function rangeFrom(bounds: Bounds, target: Uint8Array, reverse: boolean): KeyRange<Key> | undefined {
  const { gt, gte, lt, lte } = bounds;
  const isBelow = gte ? compare(target, gte) < 0 : gt !== undefined && compare(target, gt) <= 0;
  const isAbove = lte ? compare(target, lte) > 0 : lt !== undefined && compare(target, lt) >= 0;
  if (isBelow || isAbove) return undefined;
  return rangeOf(reverse ? { ...bounds, lte: target } : { ...bounds, gte: target });
}

/** The part of the bounds after `key`, or before it in reverse. */
export function rangeAfter({ gt, gte, lt, lte }: Bounds, key: Uint8Array, reverse: boolean): KeyRange<Key> {
  return reverse ? rangeOf({ gt, gte, lt: key }) : rangeOf({ gt: key, lt, lte });
}

/** Below 0 if `a` comes first, 0 if both are equal: the order of keys that are bytes. */
function compare(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number);
  return a.length - b.length;
}
