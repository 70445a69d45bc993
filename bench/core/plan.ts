/**
 * What is to be run: the choice of the page or the command line, and the messages in which a run reports.
 */

import type { Order } from './draw.ts';
import type { Access, Durability } from './engine.ts';
import type { KeyKind } from './generator.ts';
import type { Failover, Row } from './rows.ts';

/** A choice of suites, engines and ways in. Plain data: it travels to the worker. */
export interface Plan {
  /** Fewer calls and shorter rounds, or the suites' own figures. */
  readonly mode: 'quick' | 'full';
  /** Names of suites; in the order of the suites, not of this list. */
  readonly suites: readonly string[];
  /** Names of engines. */
  readonly engines: readonly string[];
  readonly accesses: readonly Access[];
  /** Interleaved rounds of each suite; the row shows their median. */
  readonly rounds: number;
  /** Every dataset and every trace follows from it. */
  readonly seed: number;
  /** A factor on the keys and calls of the suites. */
  readonly scale: number;
  /** What is to be different from what the suites say; also what the suite `custom` runs with. */
  readonly custom: Custom;
}

/** In which manner keys are drawn. */
export type Distribution = Order;

/** Choices in place of a suite's own. What is absent stays as the suite says. */
export interface Custom {
  /** Keys of the dataset. */
  readonly entries?: number;
  /** Calls of a round. */
  readonly calls?: number;
  /** Characters of a string key. */
  readonly keyBytes?: number;
  readonly valueBytes?: number;
  readonly keyKind?: KeyKind;
  readonly distribution?: Distribution;
  /** Share of reads among the calls of a mix, 0 to 1. */
  readonly readRatio?: number;
  /** Bytes: Varve's option `memoryBytes`. */
  readonly memoryBytes?: number;
  readonly durability?: Durability;
  /** Where Varve keeps its files. */
  readonly storage?: 'opfs' | 'indexeddb' | 'memory';
  /** Callers at once in the page, or calls in flight. */
  readonly threads?: number;
  /** The longest that a round may take, in milliseconds. */
  readonly round_ms?: number;
}

/** Rounds of a suite, unless a plan says otherwise. */
export const ROUNDS = 3;

/** The longest that a round may take, in milliseconds: slow engines are cut short, and the row says how far they came. */
export function budgetMs(plan: Plan): number {
  return plan.custom.round_ms ?? (plan.mode === 'quick' ? 120 : 2000);
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
  /** Bytes logged, flushed and compacted for each byte of keys and values that was written; null where the session wrote none. */
  readonly writeAmplification: number | null;
  /** Sorted runs that a read may have to visit: memtables, tables of level 0, levels below. */
  readonly readAmplification: number;
  readonly walSegments: number;
  readonly tablesPerLevel: readonly number[];
  /** Memtables, cache, and the indexes and filters of open tables. */
  readonly memoryBytes: number;
  /** Everything the store says about itself. */
  readonly stats: object;
}

/** What a run reports while it runs. */
export type RunEvent =
  | { readonly type: 'progress'; readonly done: number; readonly total: number; readonly text: string }
  | { readonly type: 'row'; readonly row: Row }
  | { readonly type: 'failover'; readonly failover: Failover }
  | { readonly type: 'storage'; readonly storage: StorageReport }
  /** About every 50 ms of a round: operations since the sample before. `at_ms` counts from the start of the round. */
  | {
      readonly type: 'sample';
      readonly suite: string;
      readonly engine: string;
      readonly access: Access;
      readonly round: number;
      readonly at_ms: number;
      readonly ops: number;
    }
  /** Of Varve's stores only, between the groups of calls and not timed. `space` is told where files can be weighed. */
  | {
      readonly type: 'amplification';
      readonly engine: string;
      readonly at_ms: number;
      readonly write: number;
      readonly read: number;
      readonly space: number | undefined;
    }
  /** What a reader of the result may want to know and is no fault: an engine that sat out a suite, and why. */
  | { readonly type: 'note'; readonly text: string }
  /** Something that a reader of the result must know: a failed check, an engine that is not there. */
  | { readonly type: 'problem'; readonly text: string };

export type Emit = (event: RunEvent) => void;
