/**
 * Latencies of one row, and their percentiles.
 *
 * Invariant: every sample is kept and the percentiles are exact (nearest rank): a run has at most some hundred thousand.
 */

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
  static of(samples: Iterable<number>): Latencies {
    const latencies = new Latencies(0);
    latencies.#samples = Float64Array.from(samples);
    latencies.#count = latencies.#samples.length;
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
