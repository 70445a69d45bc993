/**
 * The suites: what each one loads, does and counts.
 *
 * Invariant: a suite is data. Suites that read the same fixture stand next to each other, so that the runner loads it
 * once. The quick mode runs the suites marked `quick` with their `quick` counts; a time limit for each round ends slow
 * engines early, and their row tells how many operations were really made.
 */

import type { Ability, Access, Durability, Engine, Place } from './engine.ts';
import type { KeyKind } from './generator.ts';

/** A count in the quick mode and in the full one. */
export interface Count {
  readonly quick: number;
  readonly full: number;
}

/** Which point calls a suite makes: one kind, or reads and writes with this share of reads. */
export type Mix = 'set' | 'get' | 'miss' | 'delete' | { readonly reads: number };

/** What a suite does with its store. */
export type Work =
  /** Single calls, over the keys in key order or in random order. */
  | { readonly kind: 'points'; readonly mix: Mix; readonly order: 'sequential' | 'random' }
  /** Batches of `size` entries. */
  | { readonly kind: 'batches'; readonly size: number }
  /** Ranges of `size` entries from random keys. */
  | { readonly kind: 'ranges'; readonly size: number }
  /** All entries, first to last. */
  | { readonly kind: 'scan' }
  /** Opening the store and getting one entry. */
  | { readonly kind: 'open' };

/** One suite. */
export interface Suite {
  readonly name: string;
  readonly title: string;
  readonly quick: boolean;
  readonly accesses: readonly Access[];
  readonly durability: Exclude<Durability, 'memory'>;
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
}

const EVERYWHERE: readonly Access[] = ['worker', 'page', 'inflight'];
const WORKER: readonly Access[] = ['worker'];

const base = {
  accesses: EVERYWHERE,
  durability: 'relaxed',
  keys: 'random',
  valueBytes: 100,
  load: 'nothing',
  fresh: false,
  quick: true,
} as const;

const count = (quick: number, full: number): Count => ({ quick, full });

const writes = { ...base, load: 'nothing', fresh: true, entries: count(10_000, 50_000) } as const;
/** Small enough for one memtable of Varve's. */
const inMemory = { ...base, load: 'memtable', entries: count(10_000, 10_000), calls: count(50_000, 50_000) } as const;
const inTables = { ...base, load: 'tables', entries: count(30_000, 100_000), calls: count(50_000, 100_000) } as const;
const mixed = { ...base, load: 'anywhere', entries: count(10_000, 50_000), calls: count(20_000, 100_000) } as const;

/** Every suite, in the order in which they run. */
export const SUITES: readonly Suite[] = [
  {
    ...writes,
    name: 'write-seq',
    title: 'sequential write',
    keys: 'sequential',
    calls: count(10_000, 50_000),
    work: { kind: 'points', mix: 'set', order: 'sequential' },
  },
  {
    ...writes,
    name: 'write-rand',
    title: 'random write',
    calls: count(10_000, 50_000),
    work: { kind: 'points', mix: 'set', order: 'random' },
  },
  {
    ...writes,
    name: 'write-batch',
    title: 'batches of 100',
    calls: count(100, 500),
    work: { kind: 'batches', size: 100 },
  },
  {
    ...inMemory,
    name: 'read-seq-mem',
    title: 'sequential read, memtable',
    work: { kind: 'points', mix: 'get', order: 'sequential' },
  },
  {
    ...inMemory,
    name: 'read-rand-mem',
    title: 'random read, memtable',
    work: { kind: 'points', mix: 'get', order: 'random' },
  },
  {
    ...inTables,
    name: 'read-seq-disk',
    title: 'sequential read, tables',
    work: { kind: 'points', mix: 'get', order: 'sequential' },
  },
  {
    ...inTables,
    name: 'read-rand-disk',
    title: 'random read, tables',
    work: { kind: 'points', mix: 'get', order: 'random' },
  },
  {
    ...inTables,
    name: 'read-miss',
    title: 'random read of absent keys, tables',
    accesses: WORKER,
    work: { kind: 'points', mix: 'miss', order: 'random' },
  },
  {
    ...inTables,
    name: 'range-100',
    title: 'ranges of 100',
    calls: count(200, 1000),
    work: { kind: 'ranges', size: 100 },
  },
  {
    ...inTables,
    name: 'range-500',
    title: 'ranges of 500',
    calls: count(100, 1000),
    work: { kind: 'ranges', size: 500 },
  },
  {
    ...inTables,
    name: 'scan',
    title: 'full scan',
    quick: false,
    accesses: ['worker', 'page'],
    calls: count(1, 3),
    work: { kind: 'scan' },
  },
  { ...mixed, name: 'mixed-70', title: '70% reads', work: { kind: 'points', mix: { reads: 0.7 }, order: 'random' } },
  { ...mixed, name: 'mixed-90', title: '90% reads', work: { kind: 'points', mix: { reads: 0.9 }, order: 'random' } },
  {
    ...mixed,
    name: 'delete',
    title: 'delete',
    accesses: WORKER,
    calls: count(10_000, 50_000),
    work: { kind: 'points', mix: 'delete', order: 'random' },
  },
  {
    ...writes,
    name: 'strict-set',
    title: 'strict set (flushed before it resolves)',
    accesses: ['worker', 'page'],
    durability: 'strict',
    entries: count(1000, 5000),
    calls: count(1000, 5000),
    work: { kind: 'points', mix: 'set', order: 'random' },
  },
  {
    ...writes,
    name: 'tuple-write',
    title: 'random write, tuple keys',
    quick: false,
    accesses: WORKER,
    keys: 'tuple',
    calls: count(10_000, 50_000),
    work: { kind: 'points', mix: 'set', order: 'random' },
  },
  {
    ...inMemory,
    name: 'tuple-read',
    title: 'random read, tuple keys, memtable',
    quick: false,
    accesses: WORKER,
    keys: 'tuple',
    work: { kind: 'points', mix: 'get', order: 'random' },
  },
  {
    ...writes,
    name: 'set-4k',
    title: 'random write of 4 KiB values',
    quick: false,
    accesses: WORKER,
    valueBytes: 4096,
    entries: count(1000, 4000),
    calls: count(1000, 4000),
    work: { kind: 'points', mix: 'set', order: 'random' },
  },
  {
    ...inTables,
    name: 'get-4k',
    title: 'random read of 4 KiB values, tables',
    quick: false,
    accesses: WORKER,
    valueBytes: 4096,
    entries: count(1000, 4000),
    calls: count(5000, 20_000),
    work: { kind: 'points', mix: 'get', order: 'random' },
  },
  {
    ...writes,
    name: 'load',
    title: 'bulk load by 1000',
    quick: false,
    accesses: WORKER,
    entries: count(50_000, 200_000),
    calls: count(50, 200),
    work: { kind: 'batches', size: 1000 },
  },
  {
    ...inTables,
    name: 'open',
    title: 'open and first get',
    quick: false,
    accesses: WORKER,
    entries: count(50_000, 200_000),
    calls: count(3, 5),
    work: { kind: 'open' },
  },
];

/** The suite that is no loop in one thread: one store in several tabs (tabs/suite.ts). */
export const TAB_SUITE = { name: 'multi-tab', title: 'one store in several tabs', quick: false } as const;

/** What can be asked for. */
export const CHOICES: readonly Pick<Suite, 'name' | 'title' | 'quick'>[] = [...SUITES, TAB_SUITE];

/** What an engine must be able to do to run the suite. */
export function needsOf(suite: Suite): readonly Ability[] {
  // Loading is no part of what is measured: it asks for no call that puts many entries at once.
  const needs: Ability[] = suite.load === 'nothing' ? [] : ['set'];
  if (suite.keys === 'tuple') needs.push('tuple');
  const { work } = suite;
  if (work.kind === 'batches') needs.push('batch');
  if (work.kind === 'ranges' || work.kind === 'scan') needs.push('range');
  if (work.kind === 'open') needs.push('open', 'get');
  if (work.kind !== 'points') return needs;
  return [...needs, typeof work.mix === 'object' ? 'mixed' : work.mix];
}

/** Whether the calls of a suite write: single entries, batches, or not at all. */
export function writesOf({ work }: Suite): 'points' | 'batches' | undefined {
  if (work.kind === 'batches') return 'batches';
  return work.kind === 'points' && work.mix !== 'get' && work.mix !== 'miss' ? 'points' : undefined;
}

/** The level at which the engine runs the suite, or undefined when it cannot run it. */
export function levelOf(engine: Engine, suite: Suite, access: Access): Durability | undefined {
  if (!suite.accesses.includes(access) || !engine.accesses.includes(access)) return undefined;
  if (!needsOf(suite).every((ability) => engine.abilities.includes(ability))) return undefined;
  const writes = writesOf(suite);
  if (engine.only !== undefined && writes === undefined) return undefined;
  if (engine.only === 'point writes' && writes !== 'points') return undefined;
  if (engine.durabilities.includes(suite.durability)) return suite.durability;
  return engine.durabilities.includes('memory') && suite.durability !== 'strict' ? 'memory' : undefined;
}
