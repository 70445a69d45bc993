/** Percentiles and medians. A run has at most some hundred thousand samples, so every one is kept. */

/** The percentiles of a row, in microseconds. */
export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** Exact, by the nearest rank; all NaN where there are no samples. */
export function percentilesOf(samples: readonly number[]): Percentiles {
  const sorted = Float64Array.from(samples).sort();
  const rank = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
  return { p50: rank(0.5), p95: rank(0.95), p99: rank(0.99), max: rank(1) };
}

export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? Number.NaN)) / 2;
}
