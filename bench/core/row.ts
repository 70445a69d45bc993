/** The rows of a result, wherever they were measured: what `--json` writes, and what every table is made of. */

import type { Access, Durability, Role } from './engine.ts';
import { median, type Percentiles, percentilesOf } from './latency.ts';
import { JoinedRounds, type Round } from './measure.ts';

/** A store over a long life, sampled on the way (suites/lives). */
export interface LifeStory {
  readonly planned: number;
  readonly samples: readonly LifeSample[];
  readonly livingBytes: number;
  /** On the disk, after so many milliseconds without a call. */
  readonly idle?: { readonly after_ms: number; readonly bytes: number } | undefined;
  /** Bytes logged, flushed and merged for each byte of keys and values that was written. */
  readonly writeAmplification?: number | undefined;
}

/** A store after some more steps: the window is what lies between two samples. */
export interface LifeSample {
  readonly steps: number;
  readonly at_ms: number;
  /** Of the window: steps a second, and microseconds of a step (of the mean of a group, where steps are timed in groups). */
  readonly stepsPerSecond: number;
  readonly p99: number;
  readonly disk?: { readonly files: number; readonly bytes: number } | undefined;
  readonly memoryBytes?: number | undefined;
}

/** One suite on one engine in one place. Rows with the same suite, phase and place did the same work, in turns. */
export interface Row {
  readonly suite: string;
  /** Which part of a suite of several parts: "range of 50, before"; a call of `documents`; "4 tabs, get, all at once". */
  readonly phase?: string;
  /** How the calls came: an access of the browser, or words such as "node" and "deno, 50 connections". */
  readonly access: string;
  readonly engine: string;
  readonly engineVersion?: string;
  readonly role: Role;
  readonly durability: Durability;
  readonly unit: 'ops' | 'entries' | 'ranges' | 'steps';
  readonly ops: number;
  readonly seconds: number;
  readonly opsPerSecond: number;
  /** Megabytes (10^6) of keys and values a second, at that median. */
  readonly megabytesPerSecond: number;
  /**
   * Microseconds of a call, over all rounds. With a groupSize above 1: of the means of groups; in flight: of waves. Of fewer than 20, p95
   * is the max; of fewer than 100, p99.
   */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** The same of the reads and of the writes of a mix, of the parts of groups. */
  readonly reads?: Percentiles;
  readonly writes?: Percentiles;
  /** Keys found among keys asked for; null where nothing was read. */
  readonly hitRate: number | null;
  /** All checks passed: sampled reads, counts, and the pass over the whole store. */
  readonly verified: boolean;
  readonly errors?: number;
  /** Calls that were timed as one, because one is shorter than the timer can measure, or because they were in flight. */
  readonly groupSize: number;
  readonly rounds: readonly number[];
  /** The share of the rate of its first third that the last third of a round lost: the median of the rounds that can say. */
  readonly lost?: number | undefined;
  /** How the load was made, and what else is worth saying: "open loop at 500/s"; what a compaction made of the tables. */
  readonly note?: string;
  readonly life?: LifeStory;
}

export type RowHead = Pick<Row, 'suite' | 'access' | 'engine' | 'role' | 'durability' | 'unit' | 'groupSize'> &
  Partial<Pick<Row, 'phase' | 'note' | 'life' | 'engineVersion' | 'errors'>>;

export function makeRow(head: RowHead, rounds: readonly Round[], storeVerified: boolean): Row {
  const rates = rounds.map(({ tally, elapsedMs }) => (tally.ops * 1000) / elapsedMs);
  const all = new JoinedRounds();
  for (const round of rounds) all.add(round);
  const isMix = all.reads.length > 0 && all.writes.length > 0;
  const { ops, bytes, reads, hits, wrong } = all.tally;
  const opsPerSecond = median(rates);
  const lost = rounds.flatMap((round) => round.lost ?? []);
  return {
    ...head,
    ops,
    seconds: all.elapsedMs / 1000,
    opsPerSecond,
    megabytesPerSecond: ops === 0 ? 0 : (opsPerSecond * bytes) / ops / 1e6,
    ...percentilesOf(all.latencies),
    ...(isMix && { reads: percentilesOf(all.reads), writes: percentilesOf(all.writes) }),
    hitRate: reads === 0 ? null : hits / reads,
    verified: storeVerified && ops > 0 && wrong === 0,
    rounds: rates,
    ...(lost.length > 0 && { lost: median(lost) }),
  };
}

/** How far the rounds of a row lie apart: (highest - lowest) / median. */
export function spreadOf({ rounds, opsPerSecond }: Pick<Row, 'rounds' | 'opsPerSecond'>): number {
  return (Math.max(...rounds) - Math.min(...rounds)) / opsPerSecond;
}

const WORDS: Readonly<Record<Access, string>> = {
  worker: 'in the worker',
  page: 'from the page, awaited',
  inflight: 'from the page, in flight',
};

export function placeText(access: string): string {
  return WORDS[access as Access] ?? access;
}

/** A case, which is one suite in one place and one phase, in few words: `scan (in the worker)`. */
export function caseName({ suite, phase, access }: Pick<Row, 'suite' | 'access' | 'phase'>): string {
  return `${suite}${phase === undefined ? '' : `, ${phase}`} (${placeText(access)})`;
}

export function groupsBy<R>(rows: readonly R[], keyOf: (row: R) => string): R[][] {
  const groups = new Map<string, R[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

export function casesOf(rows: readonly Row[]): Row[][] {
  return groupsBy(rows, caseName);
}
