/**
 * How Varve stands beside the best peer, case by case, and the sentences that say it.
 *
 * Invariant: the best is compared with the best, at the same durability, and only rows count whose answers were
 * verified. What is slower is said first.
 */

import { times } from '../figures.ts';
import { median } from '../latency.ts';
import type { Row } from '../rows.ts';
import { type Case, casesOf, nameOf } from './cases.ts';
import { pairedRatio, type Ratio, type Verdict, verdictOf } from './interval.ts';

/** Varve beside the best peer in one case. */
export interface Standing {
  readonly case: Case;
  readonly varve: Row;
  readonly peer: Row;
  /** Rate of Varve for each unit of the peer's. */
  readonly ratio: Ratio;
  readonly verdict: Verdict;
}

/** The rows that are compared in a case: the best of Varve and the best peer, where there are both. */
export function bestOf(rows: readonly Row[]): { varve: Row | undefined; peer: Row | undefined } {
  const best = (found: readonly Row[]): Row | undefined =>
    found
      .filter(({ verified }) => verified)
      .reduce<Row | undefined>((top, row) => (top && top.opsPerSecond >= row.opsPerSecond ? top : row), undefined);
  const varve = best(rows.filter(({ role }) => role === 'varve'));
  return {
    varve,
    peer: best(rows.filter(({ role, durability }) => role === 'peer' && durability === varve?.durability)),
  };
}

/** Where Varve stands in every case that has a peer, slowest first. */
export function standingsOf(rows: readonly Row[]): Standing[] {
  const found = casesOf(rows).flatMap((one): Standing[] => {
    const { varve, peer } = bestOf(one.rows);
    if (varve === undefined || peer === undefined) return [];
    const ratio = pairedRatio(varve.rounds, peer.rounds, varve.opsPerSecond / peer.opsPerSecond);
    return [{ case: one, varve, peer, ratio, verdict: verdictOf(ratio) }];
  });
  return found.sort((a, b) => a.ratio.ratio - b.ratio.ratio);
}

/** The sentences above everything else. */
export interface Summary {
  readonly headline: string;
  readonly slower: readonly string[];
  readonly rest: readonly string[];
}

/** Sums up where Varve stands. */
export function summaryOf(standings: readonly Standing[]): Summary {
  if (standings.length === 0) {
    return {
      headline: 'No case of this run has both Varve and a peer: choose peers to compare with.',
      slower: [],
      rest: [],
    };
  }
  const { length } = standings;
  const slower = standings.filter(({ ratio }) => ratio.ratio < 1);
  const quicker = standings.filter(({ verdict }) => verdict === 'quicker');
  const unsure = length - slower.length - quicker.length;
  const middle = times(median(standings.map(({ ratio }) => ratio.ratio)));
  const rest = [];
  if (quicker.length > 0) rest.push(`Quicker in ${quicker.length} of ${length}: ${spanOf(quicker)}.`);
  if (unsure > 0) {
    rest.push(
      `Not told apart in ${unsure} of ${length}, where Varve has the higher median: the rounds lie too far apart. More rounds tell more.`,
    );
  }
  const reached = `Varve reaches ${middle} the rate of the best peer`;
  return {
    headline: length === 1 ? `${reached}.` : `In the middle of ${length} cases ${reached}.`,
    slower: slower.map(
      ({ case: one, peer, ratio, verdict }) =>
        `${nameOf(one)}: ${times(ratio.ratio)} the rate of ${peer.engine}${verdict === 'within noise' ? ' (within noise)' : ''}`,
    ),
    rest,
  };
}

function spanOf(standings: readonly Standing[]): string {
  const ratios = standings.map(({ ratio }) => ratio.ratio);
  const [low, high] = [times(Math.min(...ratios)), times(Math.max(...ratios))];
  return low === high ? low : `${low} to ${high}`;
}
