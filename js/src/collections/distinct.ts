/**
 * The values of an index, each once, with the number of their documents.
 *
 * Entries with equal values are neighbours. A page of entries is read, and the next page begins after the last value of this one. So a
 * value with many entries costs one page, and values with few entries share pages. Where values are counted, the last one may go on
 * behind the page: it is read again with the next page, or counted in the engine if it fills a page alone.
 *
 * Invariant: all pages and counts of one walk are read from its view, so they have one read point.
 */

import { allOf } from '../runtime/all-of.ts';
import type { Key, StoreIterator } from '../types.ts';
import type { Source, Walk } from './access.ts';
import type { DefinedIndex } from './definition.ts';
import { textOf } from './key.ts';
import { type LooseWhere, rangeOf } from './where.ts';

/** Entries in a page: twice as many as the page before had values, within these bounds. */
const PAGE_MIN = 128;
const PAGE_MAX = 2048;

/** Opens a page of entries: the first one, or the one from a bound on. */
export function openPage(
  view: Source,
  { base }: DefinedIndex,
  where: LooseWhere,
  bound: Pick<LooseWhere, 'gt' | 'gte' | 'lt' | 'lte'> = {},
  limit = PAGE_MIN,
): StoreIterator<Key> {
  const { reverse, signal } = where;
  return view.keys({ ...rangeOf(base, { ...where, ...bound }), reverse, signal, limit });
}

/** The values of an index in order. Without `isCounting` the numbers mean nothing. */
export async function* countsOf(
  { scan, view }: Walk<Key>,
  index: DefinedIndex,
  where: LooseWhere,
  isCounting: boolean,
): AsyncGenerator<[Key, number], void, undefined> {
  const { limit = Number.POSITIVE_INFINITY, reverse, signal } = where;
  let left = limit;
  let size = PAGE_MIN;
  for (let page = await allOf(scan); page.length > 0 && left > 0; ) {
    const counts = grouped(page, index.base.length);
    const last = counts.at(-1) as [Key, number];
    const isFull = page.length === size;
    size = Math.min(Math.max(PAGE_MIN, 2 * counts.length), PAGE_MAX);
    const isCut = isCounting && isFull;
    // The next page begins with the last value, if it has a page for itself then.
    const isAgain = isCut && counts.length > 1;
    if (isAgain) counts.pop();
    const bound = isAgain ? (reverse ? 'lte' : 'gte') : reverse ? 'lt' : 'gt';
    const isMore = isFull && counts.length < left;
    // Both are sent in one turn.
    const [next, count] = await Promise.all([
      isMore ? allOf(openPage(view, index, where, { [bound]: last[0] }, size)) : [],
      isCut && !isAgain ? view.count({ ...rangeOf(index.base, { eq: last[0] }), signal }) : last[1],
    ]);
    last[1] = count;
    yield* counts.slice(0, left);
    left -= counts.length;
    page = next;
  }
}

/** The values in a page of entries, and how many entries each has in it. */
function grouped(page: readonly Key[], at: number): [Key, number][] {
  const counts: [Key, number][] = [];
  let text: string | undefined;
  for (const place of page) {
    const value = (place as readonly Key[])[at] as Key;
    const same = textOf(value);
    const last = counts.at(-1);
    if (last !== undefined && same === text) last[1]++;
    else counts.push([value, 1]);
    text = same;
  }
  return counts;
}
