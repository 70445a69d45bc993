/**
 * A row of the server suites: one kind of work on one server, over all its rounds.
 *
 * Invariant: rates are medians of the rounds, percentiles are of all requests of all rounds, and errors are counted, never left out. Times are
 * in microseconds.
 */

import type { Durability } from 'varve';
import { Latencies, median } from '../../core/latency.ts';
import type { Outcomes } from './session.ts';
import type { Verdict } from './thresholds.ts';

/** How requests came: each when the one before was answered, at a fixed rate, or calls without a server. */
export type Loop = 'closed' | 'open' | 'calls';

/** What a row is of. */
export interface RowHead {
  readonly suite: string;
  /** What it does, in words. */
  readonly work: string;
  /** Where the server runs: `node`, `deno`, `workerd`. */
  readonly runtime: string;
  /** `varve`, or `bare`: the same bytes through the server alone. */
  readonly engine: string;
  /** What its writes reached. */
  readonly durability: Durability;
  readonly loop: Loop;
  /** Connections, or calls in flight. */
  readonly connections: number;
  /** Requests a second that were due; of an open loop. */
  readonly due?: number | undefined;
  /** What was published of such a row, of another store on another machine. */
  readonly published?: string | undefined;
}

/** One round of a row. */
export interface Round {
  readonly outcomes: Outcomes;
  readonly seconds: number;
  readonly latencies: Latencies;
}

/** A row of the result; its JSON is what `--json` writes. */
export interface HttpRow extends RowHead {
  /** Requests that were answered rightly, and the operations they asked for. */
  readonly requests: number;
  readonly operations: number;
  readonly seconds: number;
  /** Medians of the rounds. */
  readonly requestsPerSecond: number;
  readonly opsPerSecond: number;
  /** Of requests, in microseconds. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** Requests that failed or were answered wrongly. */
  readonly errors: number;
  /** Their share of all requests. */
  readonly errorShare: number;
  /** No answer was wrong, and afterwards the store held what was acknowledged and nothing else. */
  readonly verified: boolean;
  /** Operations a second of each round. */
  readonly rounds: readonly number[];
  /** Requests a second of the bare server for the same bytes, in the same rounds. */
  readonly barePerSecond?: number | undefined;
  /** What went wrong first, in words. */
  readonly problem?: string | undefined;
  /** The thresholds of the load suites. */
  readonly verdict?: Verdict | undefined;
}

/** Sums up the rounds of a row. That the store held what it must afterwards is for the caller to find out. */
export function makeRow(head: RowHead, rounds: readonly Round[]): HttpRow {
  const latencies = new Latencies();
  for (const round of rounds) latencies.addAll(round.latencies);
  const sum = (of: (round: Round) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const requests = sum(({ outcomes }) => outcomes.requests);
  const wrong = sum(({ outcomes }) => outcomes.wrong);
  const errors = sum(({ outcomes }) => outcomes.failed) + wrong;
  const operations = rounds.map(({ outcomes, seconds }) => outcomes.operations / seconds);
  return {
    ...head,
    requests,
    operations: sum(({ outcomes }) => outcomes.operations),
    seconds: sum(({ seconds }) => seconds),
    requestsPerSecond: median(rounds.map(({ outcomes, seconds }) => outcomes.requests / seconds)),
    opsPerSecond: median(operations),
    ...latencies.percentiles(),
    errors,
    errorShare: errors === 0 ? 0 : errors / (requests + errors),
    verified: wrong === 0 && requests > 0,
    rounds: operations,
    problem: rounds.find(({ outcomes }) => outcomes.problem !== undefined)?.outcomes.problem,
  };
}
