/** The parts of loops: accesses, works, and the fixtures that several of them share. */

import type { Order } from '../core/draw.ts';
import type { Access } from '../core/engine.ts';
import type { Loop } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import type { Mix, Work } from '../core/work.ts';

const EVERYWHERE: readonly Access[] = ['worker', 'page', 'inflight'];
export const WORKER: readonly Access[] = ['worker'];
export const AWAITED: readonly Access[] = ['worker', 'page'];

export const points = (mix: Mix, order: Order = 'uniform'): Work => ({ kind: 'points', mix, order });

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
export const writes: Loop = { ...base, fresh: true };
/** Small enough for one memtable of Varve's. */
export const inMemory: Loop = {
  ...base,
  ...{ load: 'memtable', entries: count(10_000, 10_000), calls: count(50_000, 50_000), work: points('get') },
};
export const inTables: Loop = {
  ...base,
  ...{ load: 'tables', entries: count(30_000, 200_000), calls: count(50_000, 100_000), work: points('get') },
};
export const mixed: Loop = { ...base, load: 'anywhere', calls: count(20_000, 100_000) };
