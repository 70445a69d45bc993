/**
 * How sure a ratio of two rates is: its 95% interval, from the rounds.
 *
 * Invariant: the interval is of logarithms, so that twice as quick and half as quick are equally far from the same, and
 * it is honest about few rounds: Student's t with as many degrees of freedom as there are. One round tells nothing.
 */

/** A ratio with its interval. Without enough rounds the interval is everything. */
export interface Ratio {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

/** What a ratio says: more, less, or nothing, as the interval holds 1. */
export type Verdict = 'quicker' | 'slower' | 'within noise';

/** Two-sided 95% quantiles of Student's t for 1 to 30 degrees of freedom. */
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** The ratio of rounds that took turns: round by round, so that what disturbs both cancels out. */
export function pairedRatio(ours: readonly number[], theirs: readonly number[], ratio: number): Ratio {
  const count = Math.min(ours.length, theirs.length);
  const logs = Array.from({ length: count }, (_, i) => Math.log((ours[i] as number) / (theirs[i] as number)));
  const { mean, variance } = momentsOf(logs);
  return around(ratio, mean, Math.sqrt(variance / count), count - 1);
}

/** The ratio of rounds of two runs (Welch's interval): each run has its own noise. */
export function unpairedRatio(now: readonly number[], before: readonly number[], ratio: number): Ratio {
  const [a, b] = [now, before].map((rounds) => momentsOf(rounds.map(Math.log))) as [Moments, Moments];
  const [va, vb] = [a.variance / now.length, b.variance / before.length];
  const freedom = (va + vb) ** 2 / (va ** 2 / (now.length - 1) + vb ** 2 / (before.length - 1));
  // Rounds that are all the same leave no variance: any number of degrees gives the same empty interval.
  const least = Math.min(now.length, before.length) - 1;
  return around(ratio, a.mean - b.mean, Math.sqrt(va + vb), Number.isNaN(freedom) ? least : Math.min(freedom, 1e6));
}

/** What the interval of a ratio allows to say. */
export function verdictOf({ low, high }: Ratio): Verdict {
  if (low > 1) return 'quicker';
  return high < 1 ? 'slower' : 'within noise';
}

interface Moments {
  readonly mean: number;
  readonly variance: number;
}

function momentsOf(figures: readonly number[]): Moments {
  const mean = figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
  const squares = figures.reduce((sum, figure) => sum + (figure - mean) ** 2, 0);
  return { mean, variance: squares / (figures.length - 1) };
}

function around(ratio: number, mean: number, error: number, freedom: number): Ratio {
  if (!(freedom >= 1) || !Number.isFinite(mean)) return { ratio, low: 0, high: Number.POSITIVE_INFINITY };
  const t = T[Math.floor(freedom) - 1] ?? 1.96;
  const [low, high] = [Math.exp(mean - t * error), Math.exp(mean + t * error)];
  // The ratio shown is that of the medians; few rounds can put it beside the interval of their means.
  return { ratio, low: Math.min(low, ratio), high: Math.max(high, ratio) };
}
