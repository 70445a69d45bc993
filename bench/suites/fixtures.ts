/** The parts of loops: accesses, works, and the fixtures that several of them share. */

import type { Order } from '../core/draw.ts';
import type { Access } from '../core/engine.ts';
import type { Loop } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import type { Mix, Work } from '../core/work.ts';

const EVERYWHERE: readonly Access[] = ['worker', 'page', 'inflight'];
export const WORKER: readonly Access[] = ['worker'];
/** Each call awaited. */
export const AWAITED: readonly Access[] = ['worker', 'page'];

export const points = (mix: Mix, order: Order = 'uniform'): Work => ({ kind: 'points', mix, order });

/** A random write of 100 bytes, `relaxed`. */
export const base: Loop = {
  accesses: EVERYWHERE,
  durability: 'relaxed',
  keys: 'random',
  valueBytes: 100,
  load: 'nothing',
  fresh: false,
  entries: count(10_000, 50_000),
  calls: count(10_000, 50_000),
  work: points('set'),
};
/** Every round writes into a new store. */
export const writes: Loop = { ...base, fresh: true };
/** Small enough for one memtable of Varve's. */
export const inMemory: Loop = {
  ...base,
  ...{ load: 'memtable', entries: count(10_000, 10_000), calls: count(50_000, 50_000), work: points('get') },
};
/** Flushed and compacted before. */
export const inTables: Loop = {
  ...base,
  ...{ load: 'tables', entries: count(30_000, 100_000), calls: count(50_000, 100_000), work: points('get') },
};
/** Reads and writes side by side in a loaded store. */
export const mixed: Loop = { ...base, load: 'anywhere', calls: count(20_000, 100_000) };
