/**
 * The rows of a result: what `--json` writes, and what every table is made of.
 */

import type { LifeStory } from '../suites/lives/life.ts';
import type { Access, Durability, Role } from './engine.ts';
import { bytes } from './figures.ts';
import { Latencies, median } from './latency.ts';
import type { Round } from './measure.ts';

/** Points of a timeline. */
const TIMELINE_MAX = 100;

/** What an operation of a row is. */
export type Unit = 'ops' | 'entries' | 'ranges' | 'steps';

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

/** What lies on disk as tables. */
export interface OnDisk {
  readonly files: number;
  readonly bytes: number;
  /** Entries of all tables: older versions and tombstones count. */
  readonly entries: number;
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
  /** HDR histogram of the latencies (V2, compressed, base64), in units of 10 ns with 3 digits: mergeable across runs. */
  readonly histogram: string;
  /** Of the middle round: when it was looked at, and operations since the time before; at most 100 points. */
  readonly timeline: readonly (readonly [at_ms: number, ops: number])[];
  /** Where the browser tells. */
  readonly memory?: { readonly wasmBytes?: number; readonly heapBytes?: number };
  /** Where it can be told. */
  readonly cpu?: { readonly busy_ms: number };
  /** Of the library that was measured. */
  readonly engineVersion?: string;
  /** How the load was made, where that is not plain from the suite: "open loop at 500/s". */
  readonly note?: string;
  /** Which part of a suite of several parts, which are never set beside one another: "range of 50, before"; a call of `documents`. */
  readonly phase?: string;
  /** What a compaction made of the tables, where the row is of one. */
  readonly compaction?: { readonly before: OnDisk; readonly after: OnDisk };
  /** Of a life: how the store was over time. On the row of its steps. */
  readonly life?: LifeStory;
  /** Of the suite `multi-tab` only. */
  readonly tabs?: InTabs | undefined;
}

/** What a row says beside its figures. */
export type RowHead = Pick<
  Row,
  | 'suite'
  | 'engine'
  | 'role'
  | 'access'
  | 'durability'
  | 'unit'
  | 'groupSize'
  | 'tabs'
  | 'phase'
  | 'note'
  | 'memory'
  | 'compaction'
  | 'life'
  | 'engineVersion'
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
    histogram: latencies.histogram(),
    timeline: thinned(middleOf(rounds).timeline),
  };
}

/** The round whose rate is the row's. */
function middleOf(rounds: readonly Round[]): Round {
  const rate = ({ tally, elapsed_ms }: Round): number => tally.ops / elapsed_ms;
  const sorted = [...rounds].sort((a, b) => rate(a) - rate(b));
  const middle = sorted[(sorted.length - 1) >> 1];
  if (middle === undefined) throw new Error('A row needs at least one round.');
  return middle;
}

/** At most so many points, neighbours joined. */
function thinned(timeline: Row['timeline']): Row['timeline'] {
  const joined = Math.ceil(timeline.length / TIMELINE_MAX);
  if (joined <= 1) return timeline;
  const points: [number, number][] = [];
  for (let from = 0; from < timeline.length; from += joined) {
    const part = timeline.slice(from, from + joined);
    points.push([part.at(-1)?.[0] ?? 0, part.reduce((ops, point) => ops + point[1], 0)]);
  }
  return points;
}

/** What is to be said of a row beside its figures: how its load was made, or what a compaction made of the tables. */
export function noteOf({ note, compaction }: Row): string | undefined {
  if (compaction === undefined) return note;
  const { before, after } = compaction;
  const files = `${before.files} files of ${bytes(before.bytes)} became ${after.files} of ${bytes(after.bytes)}`;
  const merged = `${files}; ${before.entries} entries, ${after.entries} after`;
  return note === undefined ? merged : `${note}; ${merged}`;
}

/** How far the rounds of a row lie apart: (highest - lowest) / median. */
export function spreadOf({ rounds, opsPerSecond }: Pick<Row, 'rounds' | 'opsPerSecond'>): number {
  return (Math.max(...rounds) - Math.min(...rounds)) / opsPerSecond;
}
