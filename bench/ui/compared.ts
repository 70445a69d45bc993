/**
 * Two runs side by side: what of one is quicker or slower than the same of the other.
 *
 * Invariant: only rows are compared that did the same work: suite, way in, phase, engine, level. A change whose interval
 * holds 1 is noise and is called so.
 */

import { rowKey } from '../core/cases.ts';
import { type Ratio, ratioOfRuns, type Verdict, verdictOf } from '../core/compare/rounds.ts';
import type { Result } from '../core/report.ts';
import type { Row } from '../core/rows.ts';

/** One row of both runs. */
export interface Compared {
  readonly before: Row;
  readonly now: Row;
  /** The rate of now for each unit of before. */
  readonly change: Ratio;
  readonly verdict: Verdict;
}

/** The rows that both runs have, what became slower first. */
export function compareRuns(before: Result, now: Result): Compared[] {
  const old = new Map(before.rows.map((row) => [rowKey(row), row]));
  return now.rows
    .flatMap((row): Compared[] => {
      const earlier = old.get(rowKey(row));
      if (earlier === undefined) return [];
      const change = ratioOfRuns(row.rounds, earlier.rounds);
      return [{ before: earlier, now: row, change, verdict: verdictOf(change) }];
    })
    .sort((a, b) => a.change.ratio - b.change.ratio);
}

/** What about the two runs differs beside what is compared: reasons for changes that are not the engines'. */
export function differencesOf(before: Result, now: Result): string[] {
  const differences: string[] = [];
  const [a, b] = [before.environment, now.environment];
  if (a.userAgent !== b.userAgent) differences.push('They ran in different browsers.');
  if (a.cores !== b.cores) differences.push(`They ran on machines with ${a.cores} and ${b.cores} cores.`);
  if (a.crossOriginIsolated !== b.crossOriginIsolated) differences.push('Only one of them had the finer timer.');
  const settings = ({ plan }: Result): string => JSON.stringify([plan.mode, plan.scale, plan.seed, plan.custom]);
  if (settings(before) !== settings(now))
    differences.push('They ran with other sizes or options: rates of the same suite are of other work.');
  return differences;
}
