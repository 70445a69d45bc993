/** Suites of the other sources, and those that compare one thing in several ways: durability, accesses, transactions. */

import type { Durability } from '../core/engine.ts';
import { type Loop, registerLoops } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import { AWAITED, base, inMemory, inTables, mixed, points, writes } from './fixtures.ts';

const LEVELS: readonly Durability[] = ['memory', 'relaxed', 'strict'];
/** Writes of a transaction of `scale-txn`, and gets of one of its reads. */
const LARGE = 10_000;
const pairs = {
  accesses: AWAITED,
  keyBytes: 32,
  valueBytes: 32,
  entries: count(50_000, 2_000_000),
  whole: true,
} as const;
const many = { ...base, ...pairs, calls: count(5, 200) };
const read: Loop = { ...many, load: 'anywhere', work: { kind: 'reads', size: LARGE } };
const few = { entries: count(1000, 5000), calls: count(1000, 5000) };

registerLoops(
  { name: 'txn', title: 'transactions that get two entries and set them' },
  { ...mixed, calls: count(2000, 20_000), work: { kind: 'transactions', size: 2 } },
);
registerLoops(
  { name: 'scale-txn', title: 'transactions of 10,000 pairs of 32 bytes' },
  { ...many, phase: 'write', fresh: true, work: { kind: 'batches', size: LARGE } },
  { ...read, phase: 'read' },
  { ...read, phase: 'read after reopen', reopened: true },
  { ...read, phase: 'iterate', calls: count(1, 1), work: { kind: 'scan' } },
);
registerLoops(
  { name: 'durability', title: 'random write at each level' },
  ...LEVELS.map((durability) => ({ ...writes, ...few, phase: durability, durability })),
);
registerLoops(
  { name: 'main-vs-worker', title: 'the same calls in the worker, awaited from the page, and in flight' },
  { ...writes, phase: 'set', entries: count(5000, 20_000), calls: count(5000, 20_000) },
  { ...inMemory, phase: 'get', calls: count(20_000, 50_000) },
);
registerLoops(
  { name: 'open-cold', title: 'open and first get of a large store' },
  { ...inTables, accesses: AWAITED, entries: count(20_000, 200_000), calls: count(3, 5), work: { kind: 'open' } },
);
registerLoops(
  { name: 'custom', title: 'reads and writes as the options say', asked: true },
  { ...base, load: 'anywhere', work: points({ reads: 0.5 }) },
);
