/**
 * Ratios of two rates with their 95% intervals, from rounds in which both took turns.
 *
 * Invariant: means are of logarithms, so that twice as quick and half as quick are equally far from the same, and intervals
 * are honest about few rounds: Student's t. One round has no interval: its ends are NaN.
 */

import jStat from 'jstat';

export interface Ratio {
  readonly ratio: number;
  /** Its ends; NaN with a single round. */
  readonly low: number;
  readonly high: number;
}

export type Verdict = 'quicker' | 'slower' | 'within noise';

/** The ratio round by round, so that what disturbs both cancels out. Rounds that one side alone has do not count. */
export function ratioOfTurns(ours: readonly number[], theirs: readonly number[]): Ratio {
  const logarithms = ours
    .slice(0, theirs.length)
    .map((rate, round) => Math.log(rate / (theirs[round] ?? Number.NaN)))
    .filter(Number.isFinite);
  const mean = jStat.mean(logarithms);
  const [low, high] = logarithms.length < 2 ? [Number.NaN, Number.NaN] : jStat.tci(mean, 0.05, logarithms);
  return { ratio: Math.exp(mean), low: Math.exp(low), high: Math.exp(high) };
}

export function verdictOf({ low, high }: Ratio): Verdict {
  if (low > 1) return 'quicker';
  return high < 1 ? 'slower' : 'within noise';
}
