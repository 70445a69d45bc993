/** How figures are written for people. */

import { median } from './latency.ts';

/** A rate or count with three digits that count: 1.52M, 48.3k, 917. */
export function rate(figure: number): string {
  if (!Number.isFinite(figure)) return '-';
  if (figure >= 1e6) return `${three(figure / 1e6)}M`;
  if (figure >= 1e3) return `${three(figure / 1e3)}k`;
  return three(figure);
}

/** Microseconds as they are read most easily: 0.65 us, 42.0 us, 1.31 ms, 2.1 s. */
export function duration(microseconds: number): string {
  if (!Number.isFinite(microseconds)) return '-';
  if (microseconds >= 1e6) return `${three(microseconds / 1e6)} s`;
  if (microseconds >= 1e3) return `${three(microseconds / 1e3)} ms`;
  return `${three(microseconds)} us`;
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let size = count;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${unit === 0 ? size : three(size)} ${units[unit]}`;
}

/** A ratio: 0.83x, 7.7x, 120x. */
export function times(ratio: number): string {
  return `${ratio >= 100 ? ratio.toFixed(0) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2)}x`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share >= 0.9995 || share === 0 ? 0 : 1)}%`;
}

const [BARS, BARS_MAX] = ['▁▂▃▄▅▆▇█', 25];

/** A chart in a cell: a bar for each figure or the median of neighbours, from zero to the largest. Empty for fewer than three. */
export function barsText(all: readonly (number | undefined)[], shown: (most: number) => string): string {
  const known = all.filter(Number.isFinite) as number[];
  const each = Math.ceil(known.length / BARS_MAX);
  const medians = known.flatMap((_, i) => (i % each === 0 ? median(known.slice(i, i + each)) : []));
  const most = Math.max(...medians);
  const bars = medians.map((figure) => BARS[Math.ceil((figure / most) * (BARS.length - 1))]);
  return bars.length < 3 ? '' : `${bars.join('')} to ${shown(most)}`;
}

function three(figure: number): string {
  return figure >= 100 ? figure.toFixed(0) : figure >= 10 ? figure.toFixed(1) : figure.toFixed(2);
}

/** A logarithmic scale of whole decades that shows 1 and all of its values. */
export interface Axis {
  readonly ticks: readonly number[];
  /** The place of a value, from 0 to 1. A value beyond the ends is cut off. */
  share(value: number): number;
}

export function axisOf(values: readonly number[]): Axis {
  const first = Math.floor(Math.log10(Math.min(1, ...values)));
  const last = Math.max(Math.ceil(Math.log10(Math.max(1, ...values))), first + 1);
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i)),
    share: (value) => Math.min((Math.log10(Math.max(value, 10 ** first)) - first) / (last - first), 1),
  };
}
