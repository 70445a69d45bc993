/**
 * Varve beside each peer, like with like.
 *
 * Invariant: a ratio is the geometric mean over the rounds that both sides ran in turns, and its interval is that of
 * those rounds. Where a suite makes single writes, what joins many of them into one commit is compared with what does so
 * as well, and one commit for each with one for each; Varve over IndexedDB is compared with what is over IndexedDB.
 */

import { meanInterval } from '../compare/statistics.ts';
import { times } from '../figures.ts';
import { groupsOf, type ResultRow } from './row.ts';

/** Varve and one peer in one suite. */
export interface Comparison {
  readonly varve: ResultRow;
  readonly peer: ResultRow;
  /** How many times the peer's rate Varve reaches. */
  readonly ratio: number;
  /** Its interval; NaN with a single round. */
  readonly low: number;
  readonly high: number;
}

/** Peers that keep their data in IndexedDB. */
const OVER_INDEXEDDB: ReadonlySet<string> = new Set([
  ...['indexeddb', 'indexeddb-grouped', 'idb', 'idb-keyval', 'localforage', 'dexie', 'browser-level'],
]);

/** Every comparison that the rows allow, in their order. Rows that were not verified are in none. */
export function comparisonsOf(rows: readonly ResultRow[]): Comparison[] {
  return groupsOf(rows.filter(({ verified }) => verified)).flatMap((group) => {
    const peers = group.filter(({ role }) => role === 'peer');
    return group
      .filter(({ role }) => role === 'varve')
      .flatMap((varve) => peers.filter((peer) => areAlike(varve, peer, group)).map((peer) => compared(varve, peer)));
  });
}

function areAlike(varve: ResultRow, peer: ResultRow, group: readonly ResultRow[]): boolean {
  if (varve.durability !== peer.durability) return false;
  if (varve.engine.includes('indexeddb') && !OVER_INDEXEDDB.has(nameOf(peer.engine))) return false;
  // Where Varve commits after each write in a row of its own, its other row joins many.
  const each = group.some(({ engine }) => engine === 'varve-sync-each');
  const joins = varve.engine === 'varve-sync';
  return !each || joins === peer.engine.endsWith('-grouped');
}

/** Without what was added about who called. */
function nameOf(engine: string): string {
  return engine.replace(/ \(.*\)$/, '');
}

function compared(varve: ResultRow, peer: ResultRow): Comparison {
  const logs = varve.rounds
    .slice(0, peer.rounds.length)
    .map((rate, round) => Math.log(rate / (peer.rounds[round] ?? Number.NaN)))
    .filter(Number.isFinite);
  const { estimate, low, high } = meanInterval(logs);
  return { varve, peer, ratio: Math.exp(estimate), low: Math.exp(low), high: Math.exp(high) };
}

/** Whether Varve is slower, by the mean over the rounds or by the medians: where those disagree, the worse one is told. */
export function isSlower({ ratio, varve, peer }: Comparison): boolean {
  return ratio < 1 || varve.opsPerSecond < peer.opsPerSecond;
}

/** Where Varve is slower than a peer, the worst first. */
export function slowerOf(comparisons: readonly Comparison[]): Comparison[] {
  return comparisons.filter(isSlower).sort((a, b) => a.ratio - b.ratio);
}

/** For each row of Varve the peer that is hardest to beat. */
export function bestPeers(comparisons: readonly Comparison[]): Comparison[] {
  const best = new Map<ResultRow, Comparison>();
  for (const comparison of comparisons) {
    const known = best.get(comparison.varve);
    if (known === undefined || comparison.ratio < known.ratio) best.set(comparison.varve, comparison);
  }
  return [...best.values()];
}

/** Whether the difference is more than the rounds' scatter. */
export function isSure({ low, high }: Comparison): boolean {
  return high < 1 || low > 1;
}

/** A ratio in words. What is slower never reads as 1.00x. */
export function ratioText(ratio: number): string {
  return ratio < 1 && ratio >= 0.995 ? `${(Math.floor(ratio * 1000) / 1000).toFixed(3)}x` : times(ratio);
}
