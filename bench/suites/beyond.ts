/** Suites of the other sources, and those that compare one thing in several ways: durability, ways in, transactions. */

import type { Durability } from '../core/engine.ts';
import type { Suite } from '../core/workloads.ts';
import { base, count, EVERYWHERE, inMemory, inTables, mixed, writes } from './base.ts';

const LEVELS: readonly Durability[] = ['memory', 'relaxed', 'strict'];

/** Writes of a transaction of `scale-txn`, and gets of one of its reads. */
const LARGE = 10_000;

const large = {
  ...base,
  family: 'S2',
  name: 'scale-txn',
  title: 'transactions of 10,000 pairs of 32 bytes',
  quick: false,
  keys: 'random',
  valueBytes: 32,
  entries: count(50_000, 200_000),
} as const;

const waysIn = {
  family: 'beyond',
  name: 'main-vs-worker',
  title: 'the same calls in the worker, awaited from the page, and in flight',
  quick: false,
  oneTable: true,
} as const;

export const BEYOND: readonly Suite[] = [
  {
    ...mixed,
    family: 'S1',
    name: 'txn',
    title: 'transactions that get two entries and set them',
    quick: false,
    calls: count(2000, 20_000),
    work: { kind: 'transactions', size: 2 },
  },
  {
    ...large,
    phase: 'write',
    load: 'nothing',
    fresh: true,
    accesses: ['worker', 'page'],
    calls: count(5, 20),
    work: { kind: 'batches', size: LARGE },
  },
  {
    ...large,
    phase: 'read',
    load: 'anywhere',
    accesses: ['worker', 'page'],
    calls: count(5, 20),
    work: { kind: 'reads', size: LARGE },
  },
  ...LEVELS.map(
    (durability): Suite => ({
      ...writes,
      family: 'S4',
      name: 'durability',
      title: 'random write at each level',
      phase: durability,
      quick: false,
      durability,
      entries: count(1000, 5000),
      calls: count(1000, 5000),
      work: { kind: 'points', mix: 'set', order: 'uniform' },
    }),
  ),
  {
    ...writes,
    ...waysIn,
    phase: 'set',
    entries: count(5000, 20_000),
    calls: count(5000, 20_000),
    work: { kind: 'points', mix: 'set', order: 'uniform' },
  },
  {
    ...inMemory,
    ...waysIn,
    phase: 'get',
    calls: count(20_000, 50_000),
    work: { kind: 'points', mix: 'get', order: 'uniform' },
  },
  {
    ...inTables,
    family: 'beyond',
    name: 'open-cold',
    title: 'open and first get of a large store',
    quick: false,
    accesses: ['worker', 'page'],
    entries: count(20_000, 200_000),
    calls: count(3, 5),
    work: { kind: 'open' },
  },
  {
    ...base,
    family: 'beyond',
    name: 'custom',
    title: 'reads and writes as the options say',
    quick: false,
    asked: true,
    accesses: EVERYWHERE,
    load: 'anywhere',
    entries: count(10_000, 50_000),
    calls: count(10_000, 50_000),
    work: { kind: 'points', mix: { reads: 0.5 }, order: 'uniform' },
  },
];
