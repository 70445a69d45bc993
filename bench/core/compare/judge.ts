/**
 * Whether Varve has become slower than it was in a baseline.
 *
 * Invariant: a row counts as slower only if the whole interval of its change lies beyond the threshold, and if among
 * all the rows looked at the change is more than chance (Holm): where nothing has changed, a run of any number of rows
 * raises an alarm in at most one of twenty cases. A row whose interval still reaches beyond the threshold is
 * unclear, never unchanged.
 */

import type { Baseline } from './baseline.ts';
import { keyOf, type Series, type SeriesName } from './ratios.ts';
import { type Difference, difference, holm, mean, type Side, variance } from './statistics.ts';

/** Below this no judgement is made: so few rounds do not show their scatter. */
export const ROUNDS_MIN = 5;
const LEVEL = 0.05;
/** The scatter between runs that all rows show together weighs as much as so many runs of the row itself. */
const SHARED_RUNS = 4;

export type Verdict =
  /** A regression: slower by more than the threshold, and surely so. */
  | 'slower'
  /** Not slower by more than the threshold, and surely so. */
  | 'same'
  /** Faster by more than the threshold, and surely so. */
  | 'faster'
  /** The interval reaches beyond the threshold and back: too noisy to tell. */
  | 'unclear'
  /** Fewer than five rounds on one side. */
  | 'few rounds'
  /** In the baseline, and not measured (or not verified) now. */
  | 'missing';

export interface Compared extends SeriesName {
  readonly verdict: Verdict;
  /** Geometric means of the ratios; undefined where there are none. */
  readonly before: number | undefined;
  readonly now: number | undefined;
  /** The change of the ratio, as a factor: 0.8 is a fifth slower. Undefined without enough rounds. */
  readonly change: { readonly estimate: number; readonly low: number; readonly high: number } | undefined;
}

/** Compares the series of a run with a baseline; the worst first. `threshold` is a share: 0.1 for 10%. */
export function compare(baseline: Baseline, series: readonly Series[], threshold: number): Compared[] {
  const found = new Map(series.map((one) => [keyOf(one), one]));
  const scatter = scatterBetweenRuns(baseline);
  const pairs = baseline.series.map((before) => {
    const now = found.get(keyOf(before));
    const enough = now !== undefined && isEnough(before) && isEnough(now);
    const between = enough ? betweenOf(before.runs, scatter) : 0;
    const change = enough ? difference(sideOf(before.runs, between), sideOf(now.runs, between)) : undefined;
    return { before, now, change };
  });
  const counts = holm(
    pairs.flatMap(({ change }) => (change === undefined ? [] : [change.chance])),
    LEVEL,
  );
  const certain = new Map(pairs.filter(({ change }) => change !== undefined).map((pair, at) => [pair, counts[at]]));
  return pairs
    .map((pair): Compared => {
      const { before, now, change } = pair;
      const { suite, access, phase, engine, against } = before;
      return {
        ...{ suite, access, engine, against },
        ...(phase === undefined ? {} : { phase }),
        verdict: verdictOf(now, change, certain.get(pair) === true, threshold),
        before: ratioOf(before.runs.flat()),
        now: now && ratioOf(now.runs.flat()),
        change: change && {
          estimate: Math.exp(change.estimate),
          low: Math.exp(change.low),
          high: Math.exp(change.high),
        },
      };
    })
    .sort((a, b) => weightOf(a) - weightOf(b));
}

function isEnough({ runs }: Series): boolean {
  return runs.flat().length >= ROUNDS_MIN && runs.every(({ length }) => length > 1);
}

function ratioOf(logs: readonly number[]): number | undefined {
  return logs.length === 0 ? undefined : Math.exp(mean(logs));
}

function verdictOf(
  now: Series | undefined,
  change: Difference | undefined,
  isCertain: boolean,
  threshold: number,
): Verdict {
  if (now === undefined) return 'missing';
  if (change === undefined) return 'few rounds';
  const slower = Math.log(1 - threshold);
  if (isCertain && change.high < slower) return 'slower';
  if (isCertain && change.low > -slower) return 'faster';
  return change.low > slower ? 'same' : 'unclear';
}

/** The order of the table: failures first, then by the estimate of the change, the worst first. */
function weightOf({ verdict, change }: Compared): number {
  const first: readonly Verdict[] = ['missing', 'slower'];
  const at = first.indexOf(verdict);
  return (at < 0 ? 0 : at - first.length) * 1e6 + (change?.estimate ?? 1e3);
}

/** The variance between whole runs of one row beyond what its rounds explain; undefined where there was one run. */
function betweenRuns(runs: readonly (readonly number[])[]): number | undefined {
  if (runs.length < 2) return undefined;
  const explained = mean(runs.map((run) => variance(run) / run.length));
  return variance(runs.map(mean)) - explained;
}

/** The same over all rows together: they ran in the same browsers. Zero where the baseline is of one run. */
function scatterBetweenRuns({ series }: Baseline): number {
  const known = series.flatMap(({ runs }) => betweenRuns(runs) ?? []).filter(Number.isFinite);
  return known.length === 0 ? 0 : Math.max(0, mean(known));
}

/** The scatter between two runs of this row, however many rounds they have: its own figures, drawn to those of all rows. */
function betweenOf(runs: readonly (readonly number[])[], shared: number): number {
  const own = betweenRuns(runs);
  if (own === undefined || !Number.isFinite(own)) return shared;
  const weight = runs.length - 1;
  return (Math.max(0, own) * weight + shared * SHARED_RUNS) / (weight + SHARED_RUNS);
}

function sideOf(runs: readonly (readonly number[])[], between: number): Side {
  const rounds = runs.flat();
  const freedom = rounds.length - runs.length;
  // Rounds scatter about the mean of their own run.
  const within = runs.reduce((sum, run) => sum + (variance(run) || 0) * (run.length - 1), 0) / freedom;
  return { mean: mean(runs.map(mean)), error: within / rounds.length + between / runs.length, freedom };
}
