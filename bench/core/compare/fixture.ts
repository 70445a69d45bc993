/**
 * Made-up runs for the tests of comparisons: rows whose rounds scatter as a test asks, from a seed.
 */

import { planOf } from '../fixture.ts';
import type { Random } from '../generator.ts';
import type { Baseline } from './baseline.ts';
import type { Series, SeriesName } from './ratios.ts';

/** Draws from a normal distribution with this standard deviation and the mean 0 (Box and Muller). */
export function normalOf(random: Random): (deviation: number) => number {
  const share = (): number => (random.next() + 1) / 2 ** 32;
  return (deviation) => deviation * Math.sqrt(-2 * Math.log(share())) * Math.cos(2 * Math.PI * share());
}

function nameOf(n: number): SeriesName {
  return { suite: `suite-${n}`, access: 'worker', engine: 'varve-sync', against: 'map' };
}

export function baselineOf(series: readonly (readonly (readonly number[])[])[]): Baseline {
  return {
    ...{ version: 1, dates: [], commit: undefined, browser: 'Chrome/1', plan: planOf([]) },
    series: series.map((runs, n): Series => ({ ...nameOf(n), runs })),
  };
}

/** Series as a run gives them. */
export function seriesWith(rounds: readonly (readonly number[])[]): Series[] {
  return rounds.map((run, n) => ({ ...nameOf(n), runs: [run] }));
}
