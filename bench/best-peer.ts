/**
 * What Varve is beside the best peer of the same run, suite by suite.
 *
 * Invariant: like is set beside like. A peer counts only if its row was verified and its writes reached the level of
 * Varve's row; floors are no peers. Each side is the quickest of its ways to do what the suite asks for, so that a peer
 * that joins calls stands beside a Varve that joins them.
 */

import { percent, rate, times } from './figures.ts';
import { type Row, spreadOf } from './rows.ts';

/** Varve's row of a group and the best of its peers, with how many times the peer's rate Varve reaches. */
export interface BestPeer {
  readonly varve: Row;
  readonly peer: Row;
  readonly ratio: number;
}

/**
 * The best peer of rows that belong together: of one suite and one way in.
 *
 * @returns one for each phase that the rows have; none where there is no peer to stand beside Varve
 */
export function bestPeers(rows: readonly Row[]): BestPeer[] {
  const phases = new Set(rows.map(({ phase }) => phase));
  return [...phases].flatMap((phase) => {
    const found = bestPeer(rows.filter((row) => row.phase === phase));
    return found === undefined ? [] : [found];
  });
}

/** The best peer of rows of one suite, one way in and one phase; undefined where there is none. */
export function bestPeer(rows: readonly Row[]): BestPeer | undefined {
  const varve = quickest(rows.filter(({ role, verified }) => role === 'varve' && verified));
  if (varve === undefined) return undefined;
  const peer = quickest(
    rows.filter(({ role, verified, durability }) => role === 'peer' && verified && durability === varve.durability),
  );
  return peer === undefined ? undefined : { varve, peer, ratio: varve.opsPerSecond / peer.opsPerSecond };
}

function quickest(rows: readonly Row[]): Row | undefined {
  return rows.reduce<Row | undefined>(
    (best, row) => (best === undefined || row.opsPerSecond > best.opsPerSecond ? row : best),
    undefined,
  );
}

/** The titles of the columns of the table. */
export const BEST_PEER_COLUMNS = [
  'suite',
  'access',
  'durability',
  'Varve',
  'per second',
  'spread',
  'best peer',
  'per second',
  'spread',
  'Varve is',
] as const;

/** The lines of the table for a group of rows, as texts: one for each phase. */
export function bestPeerCells({ rows }: { readonly rows: readonly Row[] }): string[][] {
  return bestPeers(rows).map(({ varve, peer, ratio }) => [
    varve.phase === undefined ? varve.suite : `${varve.suite}, ${varve.phase}`,
    varve.access,
    varve.durability,
    varve.engine,
    rate(varve.opsPerSecond),
    percent(spreadOf(varve)),
    peer.engine,
    rate(peer.opsPerSecond),
    percent(spreadOf(peer)),
    times(ratio),
  ]);
}
