/**
 * Varve beside each peer, like with like: the one rule of what is compared, for the report, the page and the results page.
 *
 * Invariant: a ratio is the geometric mean over the rounds that both sides ran in turns, and its interval is that of
 * those rounds. Both sides were verified and reached the same level; floors are no peers. Where a suite makes single
 * writes, an engine that joins many of them into one commit is compared with one that does so as well, and one commit for each
 * with one for each; Varve over IndexedDB is compared with peers over IndexedDB.
 */

import { times } from './figures.ts';
import { type Ratio, ratioOfTurns, verdictOf } from './ratio.ts';
import type { Row } from './row.ts';

type Comparable = Pick<Row, 'engine' | 'role' | 'durability' | 'verified' | 'opsPerSecond' | 'rounds'>;

/** Varve and one peer in one case; the ratio is how many times the peer's rate Varve reaches. */
export interface Comparison<R extends Comparable = Row> extends Ratio {
  readonly varve: R;
  readonly peer: R;
}

const RATIO_MAX = 9999;

const OVER_INDEXEDDB = new Set(['indexeddb', 'indexeddb-grouped', 'idb-keyval', 'dexie', 'browser-level']);

/** Every comparison that groups of rows allow, in their order. The rows of a group did the same work. */
export function comparisonsOf<R extends Comparable>(groups: readonly (readonly R[])[]): Comparison<R>[] {
  return groups.flatMap((rows) => {
    const group = rows.filter(({ verified }) => verified);
    const of = (role: Row['role']): R[] => group.filter((row) => row.role === role);
    return of('varve').flatMap((varve) =>
      of('peer')
        .filter((peer) => areAlike(varve, peer, group))
        .map((peer) => ({ varve, peer, ...ratioOfTurns(varve.rounds, peer.rounds) })),
    );
  });
}

function areAlike(varve: Comparable, peer: Comparable, group: readonly Comparable[]): boolean {
  if (varve.durability !== peer.durability) return false;
  // Without what was added about who called.
  const name = peer.engine.replace(/ \(.*\)$/, '');
  if (varve.engine.includes('indexeddb') && !OVER_INDEXEDDB.has(name)) return false;
  // Where Varve commits after each write in a row of its own, its other row joins many; a strict one never does.
  const isStrict = varve.durability === 'strict';
  const each = isStrict || group.some(({ engine }) => engine === 'varve-sync-each');
  return !each || (!isStrict && varve.engine === 'varve-sync') === peer.engine.endsWith('-grouped');
}

export function bestPeers<R extends Comparable>(comparisons: readonly Comparison<R>[]): Comparison<R>[] {
  const best = new Map<R, Comparison<R>>();
  for (const comparison of comparisons) {
    const known = best.get(comparison.varve);
    if (known === undefined || comparison.ratio < known.ratio) best.set(comparison.varve, comparison);
  }
  return [...best.values()];
}

/** Whether Varve is slower than the peer, with the whole interval or in the one round of a life. */
export function isSlower(one: Ratio): boolean {
  return verdictOf(one) === 'slower' || (Number.isNaN(one.high) && one.ratio < 1);
}

export function slowerOf<R extends Comparable>(comparisons: readonly Comparison<R>[]): Comparison<R>[] {
  return comparisons.filter(isSlower).sort((a, b) => a.ratio - b.ratio);
}

/** The one count that the page, the results page and the README share. */
export function countText(comparisons: readonly Comparison<Comparable>[]): string {
  return `slower in ${slowerOf(comparisons).length} of ${comparisons.length} comparisons with a peer`;
}

/** A ratio in words. A slower one never reads as 1.00x; the end of an interval of few rounds can be any number, and is cut off. */
export function ratioText(ratio: number): string {
  if (ratio > RATIO_MAX) return `over ${RATIO_MAX}x`;
  return ratio < 1 && ratio >= 0.995 ? `${(Math.floor(ratio * 1000) / 1000).toFixed(3)}x` : times(ratio);
}

export function intervalText({ low, high }: Ratio): string {
  return Number.isFinite(high) ? `${ratioText(low)} to ${ratioText(high)}` : 'one round';
}
