/**
 * How Varve stands beside the best peer, case by case, and the sentences that say it.
 *
 * Invariant: what is compared is for comparison.ts to say. What is slower is said first.
 */

import { type Case, casesOf, nameOf } from '../core/cases.ts';
import { type Verdict, verdictOf } from '../core/compare/rounds.ts';
import { bestPeers, type Comparison, comparisonsOf, isSlower, ratioText } from '../core/comparison.ts';
import { times } from '../core/figures.ts';
import { median } from '../core/latency.ts';
import type { Row } from '../core/rows.ts';

/** A row of Varve beside the best peer that is like it. */
export interface Standing extends Comparison<Row> {
  readonly case: Case;
  /** The case in few words, with Varve's row where the case has several. */
  readonly name: string;
  readonly verdict: Verdict;
}

/** Where Varve stands in every case that has a peer, slowest first. */
export function standingsOf(rows: readonly Row[]): Standing[] {
  const found = casesOf(rows).flatMap((one) => {
    const best = bestPeers(comparisonsOf([one.rows]));
    return best.map((comparison): Standing => {
      const name = best.length === 1 ? nameOf(one) : `${nameOf(one)}, ${comparison.varve.engine}`;
      return { ...comparison, case: one, name, verdict: verdictOf(comparison) };
    });
  });
  return found.sort((a, b) => a.ratio - b.ratio);
}

/** The peers of one case that are the best beside a row of Varve. */
export function bestPeersIn(rows: readonly Row[]): ReadonlySet<Row> {
  return new Set(bestPeers(comparisonsOf([rows])).map(({ peer }) => peer));
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
  const slower = standings.filter(isSlower);
  const quicker = standings.filter((one) => one.verdict === 'quicker' && !isSlower(one));
  const unsure = length - slower.length - quicker.length;
  const middle = times(median(standings.map(({ ratio }) => ratio)));
  const rest = [];
  if (quicker.length > 0) rest.push(`Quicker in ${quicker.length} of ${length}: ${spanOf(quicker)}.`);
  if (unsure > 0) {
    rest.push(
      `Not told apart in ${unsure} of ${length}, where Varve is ahead: the rounds lie too far apart. More rounds tell more.`,
    );
  }
  const reached = `Varve reaches ${middle} the rate of the best peer`;
  return {
    headline: length === 1 ? `${reached}.` : `In the middle of ${length} comparisons ${reached}.`,
    slower: slower.map(
      ({ name, peer, ratio, verdict }) =>
        `${name}: ${ratioText(ratio)} the rate of ${peer.engine}${verdict === 'within noise' ? ' (within noise)' : ''}${ratio < 1 ? '' : ', but its median is lower'}`,
    ),
    rest,
  };
}

function spanOf(standings: readonly Standing[]): string {
  const ratios = standings.map(({ ratio }) => ratio);
  const [low, high] = [times(Math.min(...ratios)), times(Math.max(...ratios))];
  return low === high ? low : `${low} to ${high}`;
}
