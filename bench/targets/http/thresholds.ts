/**
 * What a server under load must keep to, as the published load test of a document store had it (S4), and what was published.
 *
 * Invariant: published figures are other people's, on other machines: they are shown beside ours and never judged.
 */

import type { Durability } from 'varve';

/** The thresholds. */
export const THRESHOLDS = { errorShare: 0.01, p95_ms: 500, requestsPerSecond: 100 } as const;

/** Which thresholds a row keeps. */
export interface Verdict {
  readonly errors: boolean;
  readonly p95: boolean;
  readonly rate: boolean;
}

/** Judges a row: errors below 1%, p95 below 500 ms, more than 100 requests a second. */
export function judge(row: { errorShare: number; p95: number; requestsPerSecond: number }): Verdict {
  return {
    errors: row.errorShare < THRESHOLDS.errorShare,
    p95: row.p95 < THRESHOLDS.p95_ms * 1000,
    rate: row.requestsPerSecond > THRESHOLDS.requestsPerSecond,
  };
}

/** In words: `kept`, or what is not. */
export function verdictText(verdict: Verdict): string {
  const missed = [
    ...(verdict.errors ? [] : ['errors']),
    ...(verdict.p95 ? [] : ['p95']),
    ...(verdict.rate ? [] : ['req/s']),
  ];
  return missed.length === 0 ? 'kept' : `missed: ${missed.join(', ')}`;
}

/** The published load test by level: 100 clients, 1 min 45 s, on another machine. */
export const PUBLISHED: Readonly<Record<Durability, string>> = {
  memory: '1,585 req/s, p95 1.82 s, 0% errors',
  relaxed: '795 req/s, p95 1.35 s, 1.1% errors',
  strict: '795 req/s, p95 1.35 s, 1.1% errors',
};
