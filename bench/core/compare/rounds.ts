/**
 * Ratios of two rates with their 95% intervals, from the rounds.
 *
 * Invariant: means are of logarithms, so that twice as quick and half as quick are equally far from the same, and intervals
 * are honest about few rounds: Student's t. One round has no interval: its ends are NaN.
 */

import { type Interval, meanInterval } from './statistics.ts';

export interface Ratio {
  readonly ratio: number;
  /** Its ends; NaN with a single round. */
  readonly low: number;
  readonly high: number;
}

/** More, less, or neither where the interval includes 1. */
export type Verdict = 'quicker' | 'slower' | 'within noise';

/** The ratio of rounds that took turns: round by round, so that what disturbs both cancels out. */
export function ratioOfTurns(ours: readonly number[], theirs: readonly number[]): Ratio {
  return ratioOf(meanInterval(logRatios(ours, theirs)));
}

/** Logarithms of the ratios of the rounds that both have. */
export function logRatios(ours: readonly number[], theirs: readonly number[]): number[] {
  return ours
    .slice(0, theirs.length)
    .map((rate, round) => Math.log(rate / (theirs[round] ?? Number.NaN)))
    .filter(Number.isFinite);
}

export function verdictOf({ low, high }: Ratio): Verdict {
  if (low > 1) return 'quicker';
  return high < 1 ? 'slower' : 'within noise';
}

function ratioOf({ estimate, low, high }: Interval): Ratio {
  return { ratio: Math.exp(estimate), low: Math.exp(low), high: Math.exp(high) };
}
