/** What suites are made of: counts, ways in, and the fixtures that several of them share. */

import type { Access } from '../core/engine.ts';
import type { Count } from '../core/workloads.ts';

export const EVERYWHERE: readonly Access[] = ['worker', 'page', 'inflight'];
export const WORKER: readonly Access[] = ['worker'];

/** A random write of 100 bytes, `relaxed`. */
export const base = {
  accesses: EVERYWHERE,
  durability: 'relaxed',
  keys: 'random',
  valueBytes: 100,
  load: 'nothing',
  fresh: false,
  quick: true,
  family: 'S0',
} as const;

/** So many in the quick mode and in the full one. */
export const count = (quick: number, full: number): Count => ({ quick, full });

/** Every round writes into a new store. */
export const writes = { ...base, load: 'nothing', fresh: true, entries: count(10_000, 50_000) } as const;
/** Small enough for one memtable of Varve's. */
export const inMemory = {
  ...base,
  load: 'memtable',
  entries: count(10_000, 10_000),
  calls: count(50_000, 50_000),
} as const;
/** Flushed and compacted before. */
export const inTables = {
  ...base,
  load: 'tables',
  entries: count(30_000, 100_000),
  calls: count(50_000, 100_000),
} as const;
/** Reads and writes side by side in a loaded store. */
export const mixed = {
  ...base,
  load: 'anywhere',
  entries: count(10_000, 50_000),
  calls: count(20_000, 100_000),
} as const;
