/**
 * A baseline: the ratios of earlier runs, kept in the repository as `bench/baseline.json`.
 *
 * Invariant: it holds ratios and what was asked for, no times and nothing of the machine but the browser's version, so
 * that it can be compared with a run on another machine. All its runs were asked for the same.
 */

import type { Plan } from '../plan.ts';
import type { Result } from '../result.ts';
import { type Series, seriesOf } from './ratios.ts';

/** Bumped when the file means something else. */
const VERSION = 1;

export interface Baseline {
  readonly version: number;
  /** ISO dates of the runs, oldest first. */
  readonly dates: readonly string[];
  readonly commit: string | undefined;
  /** The browser as it calls itself. */
  readonly browser: string;
  readonly plan: Plan;
  readonly series: readonly Series[];
}

/** A baseline of one or more runs of the same plan, of the rows that all of them have. Throws when there are none. */
export function makeBaseline(results: readonly Result[], commit: string | undefined): Baseline {
  const [first] = results;
  if (first === undefined) throw new Error('A baseline needs a run.');
  const series = seriesOf(results.map(({ rows }) => rows)).map(({ runs, ...name }) => ({
    ...name,
    runs: runs.map((run) => run.map(rounded)),
  }));
  if (series.length === 0) {
    throw new Error('No row of the run has a ratio: a baseline needs verified rows of Varve and of a floor or peer.');
  }
  return {
    version: VERSION,
    dates: results.map(({ environment }) => environment.date),
    commit,
    browser: browserOf(first.environment.userAgent),
    plan: first.plan,
    series,
  };
}

/** Reads a baseline file. Throws a sentence when it is none. */
export function parseBaseline(text: string, file: string): Baseline {
  const parsed: Partial<Baseline> | null = JSON.parse(text);
  if (parsed?.version === VERSION && parsed.plan !== undefined && Array.isArray(parsed.series))
    return parsed as Baseline;
  throw new Error(
    `${file} is no baseline of this version of the benchmark: renew it with --save-baseline ${file}, as bench/README.md says.`,
  );
}

export function baselineText({ series, ...head }: Baseline): string {
  return jsonWith(head, 'series', series);
}

/** JSON that ends with a list, a line for each of its items, so that a change of it can be read. */
export function jsonWith(head: object, name: string, list: readonly unknown[]): string {
  const lines = list.map((item) => `    ${JSON.stringify(item)}`);
  return `${JSON.stringify(head, undefined, 2).slice(0, -2)},\n  "${name}": [\n${lines.join(',\n')}\n  ]\n}\n`;
}

/** The name and version of the browser in its user agent. */
export function browserOf(userAgent: string): string {
  return /(?:Chrome|Chromium|Firefox|Version)\/[\d.]+/.exec(userAgent)?.[0] ?? userAgent;
}

/** Four digits of a logarithm are a hundredth of a percent of the ratio. */
function rounded(figure: number): number {
  return Number(figure.toFixed(4));
}
