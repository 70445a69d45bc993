/**
 * The rows of a result: what `--json` writes, and what every table is made of.
 */

import type { DocumentCall } from './documents/suite.ts';
import type { Access, Durability, Role } from './engine.ts';
import { Latencies, median } from './latency.ts';
import type { Round } from './measure.ts';

/** What an operation of a row is. */
export type Unit = 'ops' | 'entries' | 'ranges';

/** Of a row of the suite `multi-tab`: what was called, by whom, and who else was there. */
export interface InTabs {
  /** Tabs that have the store open. */
  readonly count: number;
  readonly call: 'get' | 'set';
  /** Whose calls the row counts. `tab` is one tab of an engine that has no leader. */
  readonly role: 'leader' | 'follower' | 'tab' | 'all';
  /** One tab calls and the others have the store open, or all call at once. */
  readonly load: 'alone' | 'all';
  /** Real tabs, or frames of the page, which share its process and its thread. */
  readonly place: 'tab' | 'frame';
}

/** What the writers of one engine noticed when the tab that leads was ended, again and again. */
export interface Failover {
  readonly engine: string;
  readonly cause: 'close' | 'terminate' | 'kill';
  readonly place: InTabs['place'];
  /** The engine has no leader otherwise: the first tab was ended. */
  readonly hasLeader: boolean;
  /** Tabs that had the store open, the one that was ended included. */
  readonly tabs: number;
  /** Of each writer, each time: the longest time between two acknowledged writes. */
  readonly pauses_ms: readonly number[];
  /** The same pauses: from the command to their ends. A browser takes its time to end a tab. */
  readonly fromCommand_ms: readonly number[];
}

/** One suite on one engine through one access. */
export interface Row {
  readonly suite: string;
  readonly engine: string;
  readonly role: Role;
  readonly access: Access;
  readonly durability: Durability;
  readonly unit: Unit;
  /** Operations and time of all rounds together. */
  readonly ops: number;
  readonly seconds: number;
  /** The median of the rounds. */
  readonly opsPerSecond: number;
  /** Megabytes (10^6) of keys and values a second, at that median. */
  readonly megabytesPerSecond: number;
  /** Microseconds of a call, over all rounds. With a groupSize above 1: of the means of groups; in flight: of waves. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** Keys found among keys asked for; null where nothing was read. */
  readonly hitRate: number | null;
  /** All checks passed: sampled reads, counts, and the pass over the whole store. */
  readonly verified: boolean;
  /** Calls that were timed as one, because one is shorter than the timer can tell, or because they were in flight. */
  readonly groupSize: number;
  /** Operations a second of each round. */
  readonly rounds: readonly number[];
  /** How often the store said VARVE_BUSY and was waited for. */
  readonly busy: number;
  /** Of the suite `multi-tab` only. */
  readonly tabs?: InTabs | undefined;
  /** Of the suite `documents` only: what was called. */
  readonly document?: DocumentCall | undefined;
}

/** What a row says beside its figures. */
export type RowHead = Pick<
  Row,
  'suite' | 'engine' | 'role' | 'access' | 'durability' | 'unit' | 'groupSize' | 'tabs' | 'document'
>;

/** Sums up the rounds of one suite on one engine. */
export function makeRow(head: RowHead, rounds: readonly Round[], storeVerified: boolean): Row {
  const rates = rounds.map(({ tally, elapsed_ms }) => (tally.ops * 1000) / elapsed_ms);
  const latencies = new Latencies();
  for (const round of rounds) latencies.addAll(round.latencies);
  const sum = (of: (round: Round) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const ops = sum(({ tally }) => tally.ops);
  const reads = sum(({ tally }) => tally.reads);
  const opsPerSecond = median(rates);
  return {
    ...head,
    ops,
    seconds: sum(({ elapsed_ms }) => elapsed_ms) / 1000,
    opsPerSecond,
    megabytesPerSecond: (opsPerSecond * sum(({ tally }) => tally.bytes)) / ops / 1e6,
    ...latencies.percentiles(),
    hitRate: reads === 0 ? null : sum(({ tally }) => tally.hits) / reads,
    verified: storeVerified && sum(({ tally }) => tally.wrong) === 0,
    rounds: rates,
    busy: sum(({ busy }) => busy),
  };
}

/** How far the rounds of a row lie apart: (highest - lowest) / median. */
export function spreadOf(row: Row): number {
  return (Math.max(...row.rounds) - Math.min(...row.rounds)) / row.opsPerSecond;
}
