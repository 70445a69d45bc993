/**
 * Latencies of one row, and their percentiles.
 *
 * Invariant: every sample is kept and the percentiles are exact (nearest rank). A run has at most some hundred thousand
 * samples, so what is shown is not rounded; the histogram, which can be merged with others, is
 * made of them when the row is.
 */

import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js';

/** Units of a histogram in a microsecond: it counts in steps of 10 ns. */
export const UNITS_PER_US = 100;
/** The longest latency that a histogram tells apart: an hour, in its units. */
const HISTOGRAM_MAX = 3600 * 1e6 * UNITS_PER_US;

/** An empty histogram of the kind that rows carry. */
export function emptyHistogram(): Histogram {
  return build({
    bitBucketSize: 64,
    autoResize: true,
    lowestDiscernibleValue: 1,
    highestTrackableValue: 2,
    numberOfSignificantValueDigits: 3,
    useWebAssembly: false,
  });
}

/** Reads `Row.histogram` again. */
export function readHistogram(text: string): Histogram {
  return decodeFromCompressedBase64(text, 64, false);
}

/** The percentiles of a row, in microseconds. */
export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** A growing list of samples in microseconds that allocates nothing while it is filled, up to its first capacity. */
export class Latencies {
  #samples: Float64Array;
  #count = 0;

  constructor(capacity = 4096) {
    this.#samples = new Float64Array(capacity);
  }

  /** A list of these samples. */
  static of(samples: Float64Array): Latencies {
    const latencies = new Latencies(0);
    latencies.#samples = samples;
    latencies.#count = samples.length;
    return latencies;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds one sample, in microseconds. */
  add(microseconds: number): void {
    if (this.#count === this.#samples.length) this.#grow(this.#count * 2);
    this.#samples[this.#count++] = microseconds;
  }

  /** Adds all samples of another list. */
  addAll(other: Latencies): void {
    if (this.#count + other.#count > this.#samples.length) this.#grow(this.#count + other.#count);
    this.#samples.set(other.#samples.subarray(0, other.#count), this.#count);
    this.#count += other.#count;
  }

  /** All samples, in the order in which they were added: a copy. */
  samples(): Float64Array {
    return this.#samples.slice(0, this.#count);
  }

  /** The percentiles of what was added; all NaN when nothing was. */
  percentiles(): Percentiles {
    const sorted = this.#samples.slice(0, this.#count).sort();
    const rank = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
    return { p50: rank(0.5), p95: rank(0.95), p99: rank(0.99), max: rank(1) };
  }

  /** The samples as an HDR histogram, written as text: mergeable, and exact to 3 digits. */
  histogram(): string {
    const histogram = emptyHistogram();
    for (let i = 0; i < this.#count; i++) {
      histogram.recordValue(
        Math.min(HISTOGRAM_MAX, Math.max(1, Math.round((this.#samples[i] as number) * UNITS_PER_US))),
      );
    }
    return encodeIntoCompressedBase64(histogram);
  }

  #grow(capacity: number): void {
    const grown = new Float64Array(capacity);
    grown.set(this.#samples.subarray(0, this.#count));
    this.#samples = grown;
  }
}

/** The middle of a list of figures (the mean of the two middle ones of an even list). */
export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? Number.NaN)) / 2;
}
