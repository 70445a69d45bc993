/**
 * The statistics that the bench judges by: means of logarithms of ratios, their intervals, and the chance
 * that is left when there are many rows.
 *
 * Invariant: nothing here draws at random, so that the same figures give the same judgement.
 */

import jStat from 'jstat';

/** An estimate and the two ends of its interval. */
export interface Interval {
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
}

/** An interval includes the true value in so many of all cases. */
const CONFIDENCE = 0.95;

/** The arithmetic mean; NaN of nothing. */
export const mean = (figures: readonly number[]): number => jStat.mean(figures);

/** The variance of the distribution that the figures were drawn from (divided by n - 1); NaN of fewer than two. */
export const variance = (figures: readonly number[]): number => jStat.variance(figures, true);

/** The difference of two means, with what is needed to judge it. */
export interface Difference extends Interval {
  /** Chance of a difference as far from zero as this one, on either side, where there is none. */
  readonly chance: number;
}

/** One side of a comparison: the mean of some figures, how uncertain it is, and from how many figures that is known. */
export interface Side {
  readonly mean: number;
  /** Squared standard error of the mean. */
  readonly error: number;
  readonly freedom: number;
}

export function sideOf(figures: readonly number[]): Side {
  return { mean: mean(figures), error: variance(figures) / figures.length, freedom: figures.length - 1 };
}

/** The interval of a mean by Student's t; its ends are NaN for fewer than two figures. */
export function meanInterval(figures: readonly number[]): Interval {
  return difference({ mean: 0, error: 0, freedom: 1 }, sideOf(figures));
}

/** `now` minus `before` by Welch's t: the two sides may scatter differently. */
export function difference(before: Side, now: Side): Difference {
  const estimate = now.mean - before.mean;
  const error = before.error + now.error;
  // Figures that do not scatter at all (a test's, or a frozen timer's): any difference is certain.
  if (error === 0) return { estimate, low: estimate, high: estimate, chance: estimate === 0 ? 1 : 0 };
  const freedom = error ** 2 / (before.error ** 2 / before.freedom + now.error ** 2 / now.freedom);
  const reach = reachOf(Math.sqrt(error), freedom);
  const chance = 2 * jStat.studentt.cdf(-Math.abs(estimate) / Math.sqrt(error), freedom);
  return { estimate, low: estimate - reach, high: estimate + reach, chance };
}

function reachOf(error: number, freedom: number): number {
  if (!(freedom > 0)) return Number.NaN;
  return error * jStat.studentt.inv((1 + CONFIDENCE) / 2, freedom);
}

/**
 * Which of many chances still count at the level, by Holm's step-down rule: where nothing has changed at all, the odds
 * that any one of them counts are at most `level`, however many there are.
 */
export function holm(chances: readonly number[], level: number): boolean[] {
  const order = chances.map((chance, at) => ({ chance, at })).sort((a, b) => a.chance - b.chance);
  const counts = chances.map(() => false);
  for (const [rank, { chance, at }] of order.entries()) {
    if (!(chance <= level / (chances.length - rank))) break;
    counts[at] = true;
  }
  return counts;
}
