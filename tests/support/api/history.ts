// The parts of a history of the model fuzz. They are plain data: a history is made in Node and run in Node or in a page.
//
// A store has three parts, each with its own model:
//
//   ['k', ...]      single operations. They take effect in the order of their calls, so each answer is known before it comes
//   ['c', i]        updates, transactions, sets and deletions that are called together: some order of them must explain it all
//   notes           a collection; the same
//
// A round makes calls of all three together and then waits for all of them.

import type { FloodPlan } from '../flood.ts';
import type { ValueSpec } from './values.ts';

/** Bounds by the numbers of keys; a prefix by its number. Always within `['k']`. */
export interface RangeSpec {
  readonly from?: readonly ['gt' | 'gte', number];
  readonly to?: readonly ['lt' | 'lte', number];
  readonly prefix: number;
}

/** The condition of a write: nobody wrote the key since the round began, or nothing is there, or a sequence that never existed. */
export type ConditionSpec = 'current' | 'absent' | 'stale';

export type WriteSpec =
  | {
      readonly op: 'set';
      readonly key: number;
      readonly value: ValueSpec;
      readonly life?: number;
      readonly on?: ConditionSpec;
    }
  | { readonly op: 'delete'; readonly key: number; readonly on?: ConditionSpec; readonly asks?: boolean }
  | { readonly op: 'deleteRange'; readonly range: RangeSpec };

/** The results that are read of a range. */
export type Brought = 'keys' | 'values' | 'entries';

export interface ScanSpec {
  readonly brings: Brought;
  readonly range: RangeSpec;
  readonly reverse: boolean;
  readonly limit?: number;
}

/** One call of a store whose effect and answer follow from the calls before it. */
export type Single =
  | { readonly op: 'write'; readonly write: WriteSpec; readonly durability?: 'memory' | 'relaxed' | 'strict' }
  | { readonly op: 'batch'; readonly writes: readonly WriteSpec[] }
  /** Many at once, so that memtables fill up. */
  | { readonly op: 'setMany'; readonly from: number; readonly count: number; readonly value: ValueSpec }
  | { readonly op: 'get' | 'has' | 'getEntry'; readonly key: number }
  | { readonly op: 'getMany' | 'hasMany'; readonly keys: readonly number[] }
  | { readonly op: 'scan'; readonly scan: ScanSpec }
  | { readonly op: 'count'; readonly range: RangeSpec }
  | { readonly op: 'openScan'; readonly slot: number; readonly scan: ScanSpec }
  | { readonly op: 'advance'; readonly slot: number; readonly count: number }
  | { readonly op: 'closeScan'; readonly slot: number }
  | { readonly op: 'snapshot'; readonly slot: number }
  | { readonly op: 'readSnapshot'; readonly slot: number; readonly scan: ScanSpec; readonly key: number }
  | { readonly op: 'closeSnapshot'; readonly slot: number }
  | { readonly op: 'flush' | 'compact' | 'check' | 'stats' }
  | Refused;

/** A call that must be refused: a value that is too long, or an unknown option. `way` selects the call. */
export type Refused =
  | { readonly op: 'tooLong'; readonly key: number; readonly way: number; readonly isHuge: boolean }
  | { readonly op: 'misspelt'; readonly key: number; readonly way: number };

/** One call of those that race with each other over a few keys. */
export type Racing =
  | { readonly op: 'set'; readonly key: number; readonly life?: number }
  | { readonly op: 'delete'; readonly key: number }
  | { readonly op: 'deleteAll' }
  | {
      readonly op: 'update';
      readonly key: number;
      readonly waits: number;
      readonly throws: boolean;
      readonly lifetime: 'kept' | 'dropped' | number;
    }
  | {
      readonly op: 'transaction';
      readonly reads: readonly number[];
      readonly appends: readonly number[];
      readonly counts: boolean;
      readonly waits: number;
      readonly throws: boolean;
      /** By a handle of `begin()`. */
      readonly handle?: 'open' | 'exclusive' | undefined;
    };

/** Many calls at once that read and change one key. */
export interface Storm {
  readonly key: number;
  readonly count: number;
  readonly by: 'update' | 'transaction' | 'both';
  readonly waits: number;
}

/** Followers of all keys, or each of its own key, whose callers do not wait for them. */
export interface Abandoned {
  readonly count: number;
  readonly isSame: boolean;
}

/** A document of the collection. */
export interface Note {
  readonly id: number;
  readonly title: string;
  readonly tags: readonly string[];
  readonly folder?: string;
  readonly edited: number;
}

export type NoteCall =
  | { readonly op: 'insert' | 'put'; readonly note: Note }
  | { readonly op: 'insertMany'; readonly notes: readonly Note[] }
  | {
      readonly op: 'update';
      readonly id: number;
      readonly patch: Partial<Omit<Note, 'id'>>;
      readonly byFunction: boolean;
    }
  | { readonly op: 'delete'; readonly id: number }
  | { readonly op: 'clear' }
  /** Changes no document: rebuilds the indexes, or compares them. */
  | { readonly op: 'reindex' | 'check' }
  /** Reads: the counts of all tags, and two documents after this one. */
  | { readonly op: 'countBy' }
  | { readonly op: 'page'; readonly after: Note };

/** How a store is opened. */
export interface OpenSpec {
  readonly memoryBytes: number;
  readonly durability: 'relaxed' | 'strict';
  readonly cache: boolean;
}

export type Step =
  | {
      readonly type: 'round';
      readonly singles: readonly Single[];
      readonly racing: readonly Racing[];
      readonly notes: readonly NoteCall[];
      /** Each call comes in a separate turn. */
      readonly isSpread: boolean;
    }
  /** Closes with calls under way, and opens again. */
  | { readonly type: 'reopen'; readonly singles: readonly Single[]; readonly options: OpenSpec }
  /** Time passes. */
  | { readonly type: 'tick'; readonly ticks: number }
  /** Exports everything, and imports it into another store, which must then be equal. */
  | { readonly type: 'copy' }
  /** Keeps an export, whole or of `['k']`. */
  | { readonly type: 'export'; readonly slot: number; readonly isWhole: boolean }
  /** Imports a kept export over the store. */
  | { readonly type: 'merge'; readonly slot: number }
  | ({ readonly type: 'follow'; readonly range: RangeSpec } & CopySpec)
  | ({ readonly type: 'live'; readonly scan: ScanSpec } & LiveSpec)
  /** Another query replaces a live query. */
  | { readonly type: 'requery'; readonly index: number; readonly scan: ScanSpec }
  | { readonly type: 'unfollow'; readonly index: number }
  /** All followers must reach the present content. */
  | { readonly type: 'catchUp' }
  | ({ readonly type: 'storm' } & Storm)
  /** More writes at once than fit into memory. */
  | ({ readonly type: 'flood' } & FloodPlan)
  | ({ readonly type: 'abandon' } & Abandoned)
  /** A second client of the store, which takes half of the racing calls from then on. */
  | { readonly type: 'tab'; readonly options: OpenSpec }
  /** The leader ends with calls under way, this many turns after they were made; the clients continue. */
  | {
      readonly type: 'lead';
      readonly singles: readonly Single[];
      readonly racing: readonly Racing[];
      readonly notes: readonly NoteCall[];
      readonly turns: number;
    }
  /** All clients end as in a crash, with calls under way, and the store is opened again. */
  | { readonly type: 'kill'; readonly singles: readonly Single[]; readonly turns: number; readonly options: OpenSpec }
  /** Foreign files appear beside the store and in it. */
  | { readonly type: 'litter' }
  /** The folder of the store is taken away while it is open, another store is made in its place, and the folder is put back. */
  | { readonly type: 'move'; readonly options: OpenSpec };

/** How changes are followed. */
export interface CopySpec {
  readonly by: 'changes' | 'watch';
  readonly keysOnly: boolean;
  readonly fromStart: boolean;
}

/** The parts of a live query; one that begins with a value has that value until it has read another. */
export interface LiveSpec {
  readonly as: 'range' | 'count' | 'function';
  readonly hasInitial: boolean;
}

/** A history. */
export interface History {
  readonly options: OpenSpec;
  readonly steps: readonly Step[];
}

/** The most iterators, snapshots and exports that a history has open, of each. */
export const SLOTS = 3;
/** Keys that racing calls work on. */
export const RACING_KEYS = 3;

/** The first keys, which most calls have. */
export const FREQUENT_KEYS = 12;
/** How long a tick is, in milliseconds. An entry that lives for `life` ticks dies half a tick later, so real time does not matter. */
export const TICK_MS = 1e6;
