/**
 * The distribution of a row's latencies, as HDR plots draw it: microseconds over the share of calls that were quicker,
 * on an axis where each nine takes as much room as the one before.
 *
 * Invariant: no point stands for less than one recorded call, so a curve ends where its calls end.
 */

import { decodeFromCompressedBase64 } from 'hdr-histogram-js';
import type { Row } from '../core/rows.ts';
import type { Point } from './lines-chart.ts';

/** Histograms count in units of ten nanoseconds. */
const UNITS_IN_MICROSECOND = 100;
const POINTS_PER_DECADE = 12;

/** The curve: x is 1 / (1 - share), 1 for the quickest call, 100 for the 99th percentile. Empty without a histogram. */
export function latencyCurve({ histogram }: Pick<Row, 'histogram'>): Point[] {
  if (!histogram) return [];
  const decoded = decodeFromCompressedBase64(histogram);
  const count = decoded.totalCount;
  if (count === 0) return [];
  const points: Point[] = [];
  for (let i = 0; ; i++) {
    const x = Math.min(10 ** (i / POINTS_PER_DECADE), count);
    const y = decoded.getValueAtPercentile(100 * (1 - 1 / x)) / UNITS_IN_MICROSECOND;
    // A logarithmic axis has no place for what the timer saw as nothing.
    points.push({ x, y: Math.max(y, 1 / UNITS_IN_MICROSECOND) });
    if (x >= count) return points;
  }
}

/** What stands at a place of that axis: 0%, 90%, 99%, 99.9%. */
export function shareText(x: number): string {
  const nines = Math.round(Math.log10(x));
  if (Math.abs(x - 10 ** nines) > x * 1e-9) return `${(100 * (1 - 1 / x)).toPrecision(3)}%`;
  return `${(100 * (1 - 1 / x)).toFixed(Math.max(0, nines - 2))}%`;
}
