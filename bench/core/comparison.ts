/**
 * Varve beside each peer, like with like: the one rule of what is compared, for the report, the page and the results page.
 *
 * Invariant: a ratio is the geometric mean over the rounds that both sides ran in turns, and its interval is that of
 * those rounds. Both sides were verified and reached the same level; floors are no peers. Where a suite makes single
 * writes, what joins many of them into one commit is compared with what does so as well, and one commit for each with one
 * for each; Varve over IndexedDB is compared with what is over IndexedDB.
 */

import { type Ratio, ratioOfTurns } from './compare/rounds.ts';
import type { Durability, Role } from './engine.ts';
import { times } from './figures.ts';

/** What of a row counts for a comparison. */
export interface Comparable {
  readonly engine: string;
  readonly role: Role;
  readonly durability: Durability;
  readonly verified: boolean;
  /** The median of the rounds. */
  readonly opsPerSecond: number;
  /** Operations a second of each round. */
  readonly rounds: readonly number[];
}

/** Varve and one peer in one case; the ratio is how many times the peer's rate Varve reaches. */
export interface Comparison<R extends Comparable = Comparable> extends Ratio {
  readonly varve: R;
  readonly peer: R;
}

/** Larger ones are not told. */
const RATIO_MAX = 9999;

/** Peers that keep their data in IndexedDB. */
const OVER_INDEXEDDB: ReadonlySet<string> = new Set([
  ...['indexeddb', 'indexeddb-grouped', 'idb', 'idb-keyval', 'localforage', 'dexie', 'browser-level'],
]);

/** Every comparison that groups of rows allow, in their order. The rows of a group did the same work. */
export function comparisonsOf<R extends Comparable>(groups: readonly (readonly R[])[]): Comparison<R>[] {
  return groups.flatMap((rows) => {
    const group = rows.filter(({ verified }) => verified);
    const peers = group.filter(({ role }) => role === 'peer');
    return group
      .filter(({ role }) => role === 'varve')
      .flatMap((varve) =>
        peers
          .filter((peer) => areAlike(varve, peer, group))
          .map((peer) => ({ varve, peer, ...ratioOfTurns(varve.rounds, peer.rounds) })),
      );
  });
}

function areAlike(varve: Comparable, peer: Comparable, group: readonly Comparable[]): boolean {
  if (varve.durability !== peer.durability) return false;
  if (varve.engine.includes('indexeddb') && !OVER_INDEXEDDB.has(nameOf(peer.engine))) return false;
  // Where Varve commits after each write in a row of its own, its other row joins many; what is strict never does.
  const isStrict = varve.durability === 'strict';
  const each = isStrict || group.some(({ engine }) => engine === 'varve-sync-each');
  const joins = !isStrict && varve.engine === 'varve-sync';
  return !each || joins === peer.engine.endsWith('-grouped');
}

/** Without what was added about who called. */
function nameOf(engine: string): string {
  return engine.replace(/ \(.*\)$/, '');
}

/** For each row of Varve the peer that is hardest to beat. */
export function bestPeers<R extends Comparable>(comparisons: readonly Comparison<R>[]): Comparison<R>[] {
  const best = new Map<R, Comparison<R>>();
  for (const comparison of comparisons) {
    const known = best.get(comparison.varve);
    if (known === undefined || comparison.ratio < known.ratio) best.set(comparison.varve, comparison);
  }
  return [...best.values()];
}

/** Whether Varve is slower, by the mean over the rounds or by the medians: where those disagree, the worse one is told. */
export function isSlower({ ratio, varve, peer }: Comparison): boolean {
  return ratio < 1 || varve.opsPerSecond < peer.opsPerSecond;
}

/** Where Varve is slower than a peer, the worst first. */
export function slowerOf<R extends Comparable>(comparisons: readonly Comparison<R>[]): Comparison<R>[] {
  return comparisons.filter(isSlower).sort((a, b) => a.ratio - b.ratio);
}

/** How many times the rate of a row the first row of Varve in its group reaches; undefined for that row, and without one. */
export function varveBeside<R extends Comparable>(row: R, group: readonly R[]): number | undefined {
  const varve = group.find(({ role }) => role === 'varve');
  return varve === undefined || varve === row ? undefined : varve.opsPerSecond / row.opsPerSecond;
}

/** A ratio in words. What is slower never reads as 1.00x; the end of an interval of few rounds can be any number, and is cut off. */
export function ratioText(ratio: number): string {
  if (ratio > RATIO_MAX) return `over ${RATIO_MAX}x`;
  return ratio < 1 && ratio >= 0.995 ? `${(Math.floor(ratio * 1000) / 1000).toFixed(3)}x` : times(ratio);
}

/** The same, nothing where there is none. */
export function besideText(ratio: number | undefined): string {
  return ratio === undefined ? '' : ratioText(ratio);
}
