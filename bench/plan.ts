/**
 * What is to be run: the choice of the page or the command line, and the messages in which a run reports.
 */

import type { Access } from './engine.ts';
import type { Failover, Row } from './rows.ts';

/** A choice of suites, engines and ways in. Plain data: it travels to the worker. */
export interface Plan {
  readonly quick: boolean;
  /** Names of suites; in the order of the suites, not of this list. */
  readonly suites: readonly string[];
  /** Names of engines. */
  readonly engines: readonly string[];
  readonly accesses: readonly Access[];
  /** Calls of a round instead of the suite's own count. */
  readonly count?: number | undefined;
}

/** Interleaved rounds of each suite; the row shows their median. */
export const ROUNDS = 3;

/** The longest that a round may take, in milliseconds: slow engines are cut short, and the row says how far they came. */
export function budgetMs(plan: Plan): number {
  return plan.quick ? 120 : 2000;
}

/** What a store held and weighed at the end of a suite. */
export interface StorageReport {
  readonly suite: string;
  readonly engine: string;
  /** The store was flushed and compacted before the suite, which only read. */
  readonly compacted: boolean;
  readonly entries: number;
  readonly logicalBytes: number;
  /** Bytes of the store's files, as the file system counts them, after closing. */
  readonly diskBytes: number;
  /** Space amplification: those bytes for each byte of keys and values that is there. */
  readonly diskBytesPerLogicalByte: number;
  /** Bytes logged, flushed and compacted for each byte of keys and values that was written. */
  readonly writeAmplification: number;
  /** Sorted runs that a read may have to visit: memtables, tables of level 0, levels below. */
  readonly readAmplification: number;
  readonly walSegments: number;
  readonly tablesPerLevel: readonly number[];
  /** Memtables, cache, and the indexes and filters of open tables. */
  readonly memoryBytes: number;
  /** Everything the store says about itself. */
  readonly stats: Readonly<Record<string, unknown>>;
}

/** What a run reports while it runs. */
export type RunEvent =
  | { readonly type: 'progress'; readonly done: number; readonly total: number; readonly text: string }
  | { readonly type: 'row'; readonly row: Row }
  | { readonly type: 'failover'; readonly failover: Failover }
  | { readonly type: 'storage'; readonly storage: StorageReport }
  /** Something that a reader of the result must know: a failed check, an engine that is not there. */
  | { readonly type: 'problem'; readonly text: string };

export type Emit = (event: RunEvent) => void;
