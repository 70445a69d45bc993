/**
 * The suites: what each one loads, does and counts.
 *
 * Invariant: a suite is data. Suites that read the same fixture stand next to each other, so that the runner loads it
 * once. The quick mode runs the suites marked `quick` with their `quick` counts; a time limit for each round ends slow
 * engines early, and their row tells how many operations were really made.
 */

import { BEYOND } from '../suites/beyond.ts';
import { CORE } from '../suites/core.ts';
import { DB_BENCH } from '../suites/db-bench.ts';
import { YCSB } from '../suites/ycsb.ts';
import type { Order } from './draw.ts';
import type { Ability, Access, Durability, Engine, Place } from './engine.ts';
import type { KeyKind } from './generator.ts';
import { SPECIALS } from './special.ts';

/** A count in the quick mode and in the full one. */
export interface Count {
  readonly quick: number;
  readonly full: number;
}

/** Which point calls a suite makes: one kind, or reads and writes with this share of reads (and of inserts among all). */
export type Mix = 'set' | 'get' | 'miss' | 'delete' | { readonly reads: number; readonly inserts?: number };

/** What a suite does with its store. */
export type Work =
  /** Single calls. */
  | { readonly kind: 'points'; readonly mix: Mix; readonly order: Order }
  /** Batches of `size` entries. */
  | { readonly kind: 'batches'; readonly size: number }
  /** Ranges of `size` entries from random keys. */
  | { readonly kind: 'ranges'; readonly size: number }
  /** All entries, first to last. */
  | { readonly kind: 'scan' }
  /** Opening the store and getting one entry. */
  | { readonly kind: 'open' }
  /** Gets, and in these shares inserts, ranges of 1 to `size` entries, and gets that are followed by a set of the key. */
  | {
      readonly kind: 'mix';
      readonly shares: { readonly inserts: number; readonly scans: number; readonly modifies: number };
      readonly order: Exclude<Order, 'sequential'>;
      readonly size: number;
    }
  /** Gets of `size` keys in one call, as of one moment. */
  | { readonly kind: 'reads'; readonly size: number }
  /** Transactions that get `size` keys and set them. */
  | { readonly kind: 'transactions'; readonly size: number };

/** Where a workload comes from, as WORKLOADS.md names its sources. */
export type Family = 'S0' | 'S1' | 'S2' | 'S3' | 'S4' | 'beyond';

/** One suite. */
export interface Suite {
  readonly name: string;
  readonly title: string;
  readonly quick: boolean;
  readonly accesses: readonly Access[];
  readonly durability: Durability;
  readonly keys: KeyKind;
  readonly valueBytes: number;
  /** What is loaded before: nothing, or all keys, and where they are to lie then. */
  readonly load: 'nothing' | Place;
  /** Every round begins with a new store. */
  readonly fresh: boolean;
  /** Keys of the dataset. */
  readonly entries: Count;
  /** Calls of a round. */
  readonly calls: Count;
  readonly work: Work;
  readonly family: Family;
  /** Keys of the dataset that are not loaded: there is room for so many inserts. */
  readonly reserve?: Count;
  /** Several suites of one name are its phases. */
  readonly phase?: string;
  /** Runs only when it is asked for by its name: another suite does the same, or it takes long. */
  readonly asked?: boolean;
  /** The ways in stand in one table. */
  readonly oneTable?: boolean;
}

/** Every suite that is a loop in one thread, in the order in which they run. */
export const SUITES: readonly Suite[] = [...CORE, ...YCSB, ...DB_BENCH, ...BEYOND];

/** A suite as it is chosen: its phases are one choice. */
export type Choice = Pick<Suite, 'name' | 'title' | 'quick' | 'family' | 'asked' | 'oneTable'>;

/** The suite of several tabs (tabs/suite.ts). */
export const TAB_SUITE = {
  name: 'multi-tab',
  title: 'one store in several tabs',
  quick: false,
  family: 'beyond',
} as const;

/** Documents with secondary indexes, over varve/collections (documents/suite.ts). */
export const DOCUMENT_SUITE = {
  name: 'documents',
  title: 'documents with secondary indexes',
  quick: true,
  family: 'S4',
} as const;

/** What can be asked for. */
export const CHOICES: readonly Choice[] = [...firstOfEach(SUITES), ...SPECIALS, DOCUMENT_SUITE, TAB_SUITE];

function firstOfEach(suites: readonly Suite[]): Suite[] {
  return suites.filter(({ name }, i) => suites.findIndex((suite) => suite.name === name) === i);
}

/** What an engine must be able to do to run the suite. */
export function needsOf(suite: Suite): readonly Ability[] {
  // Loading is no part of what is measured: it asks for no call that puts many entries at once.
  const needs: Ability[] = suite.load === 'nothing' ? [] : ['set'];
  if (suite.keys === 'tuple') needs.push('tuple');
  const { work } = suite;
  if (work.kind === 'batches') needs.push('batch');
  if (work.kind === 'ranges' || work.kind === 'scan') needs.push('range');
  if (work.kind === 'open') needs.push('open', 'get');
  if (work.kind === 'reads') needs.push('get');
  if (work.kind === 'transactions') needs.push('transaction');
  if (work.kind === 'mix') needs.push('mixed', ...(work.shares.scans > 0 ? ['range' as const] : []));
  if (work.kind !== 'points') return needs;
  return [...needs, typeof work.mix === 'object' ? 'mixed' : work.mix];
}

/** Whether the calls of a suite write: single entries, batches, or not at all. */
export function writesOf({ work }: Suite): 'points' | 'batches' | undefined {
  if (work.kind === 'batches') return 'batches';
  if (work.kind === 'mix' || work.kind === 'transactions') return 'points';
  return work.kind === 'points' && work.mix !== 'get' && work.mix !== 'miss' ? 'points' : undefined;
}

/** The level at which the engine runs the suite, or undefined when it cannot run it. */
export function levelOf(engine: Engine, suite: Suite, access: Access): Durability | undefined {
  if (!suite.accesses.includes(access) || !engine.accesses.includes(access)) return undefined;
  if (!needsOf(suite).every((ability) => engine.abilities.includes(ability))) return undefined;
  if (engine.echo && !['points', 'batches'].includes(suite.work.kind)) return undefined;
  // A floor sorts its keys once, when it is loaded: it has no ranges over what was inserted since.
  if (engine.role === 'floor' && suite.work.kind === 'mix' && suite.work.shares.scans > 0) return undefined;
  const writes = writesOf(suite);
  if (engine.only !== undefined && writes === undefined) return undefined;
  if (engine.only === 'point writes' && writes !== 'points') return undefined;
  if (engine.durabilities.includes(suite.durability)) return suite.durability;
  return engine.durabilities.includes('memory') && suite.durability !== 'strict' ? 'memory' : undefined;
}
