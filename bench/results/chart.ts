/** The chart of the results page and of the README: the cases that a reader looks for first. */

import { barOf, chartOf } from '../core/chart.ts';
import { bestPeers, type Comparison } from '../core/comparison.ts';

/** In docs/results. */
export const CHART = 'headlines.svg';

const BARS: readonly (readonly [suite: string, access: string, name: string])[] = [
  ['read-rand-mem', 'worker', 'get, in memory'],
  ['read-rand-disk', 'worker', 'get, from tables'],
  ['write-rand', 'worker', 'set'],
  ['write-batch', 'worker', 'batches of 100, entries'],
  ['range-100', 'worker', 'ranges of 100'],
  ['mixed-70', 'worker', '70% gets, 30% sets'],
  ['strict-set', 'worker', 'set, flushed to the disk'],
  ['open', 'worker', 'open and first get'],
  ['read-rand-mem', 'page', 'get from the page, awaited'],
  ['write-rand', 'page', 'set from the page, awaited'],
  ['read-rand-mem', 'inflight', 'get from the page, 100 in flight'],
  ['write-rand', 'inflight', 'set from the page, 100 in flight'],
];

/** Undefined if there is nothing to draw. */
export function headlinesOf(comparisons: readonly Comparison[]): string | undefined {
  const best = bestPeers(comparisons).filter(
    ({ varve }) => varve.phase === undefined && !varve.engine.includes('indexeddb'),
  );
  const bars = BARS.flatMap(([suite, access, name]) =>
    best
      .filter(({ varve }) => varve.suite === suite && varve.access === access)
      .map((one) => barOf(one, one.varve.engine === 'varve-sync-each' ? `${name}, committed one by one` : name)),
  );
  if (bars.length === 0) return undefined;
  return chartOf('Varve beside the fastest peer, in times its rate. Left of the line Varve is slower', bars);
}
