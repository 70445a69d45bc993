/**
 * The suite `micro`: single operations of the wasm build in memory, in a browser and in Node; the rows of the native `micro`
 * (crates/varve-bench). A key is encoded and a value delivered, and no system call is in it. Allocations of the core are reported
 * by the native bench alone: wasm has nothing to count them with.
 */

import { type Loop, registerLoops } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import { base, points, WORKER } from './fixtures.ts';

/** The row of an operation, with the nanoseconds that S3 of the workloads published, native and on another machine. */
const row = (phase: string, published: number, more: Partial<Loop>): Loop => ({
  ...base,
  ...{ phase, accesses: WORKER, durability: 'memory', storage: 'memory', note: `published, native: ${published} ns` },
  ...{ entries: count(20_000, 200_000), calls: count(50_000, 200_000) },
  ...more,
});
const fresh = { fresh: true } as const;
const get = { work: points('get') } as const;
const loaded = { load: 'anywhere' } as const;

registerLoops(
  { name: 'micro', title: 'single operations in memory, wasm' },
  row('put', 354, fresh),
  row('get, memtable', 93, { ...get, load: 'memtable', entries: count(10_000, 10_000) }),
  row('get, SSTable', 132, { ...get, load: 'tables', entries: count(20_000, 100_000) }),
  row('get + put of a key', 532, { ...loaded, work: points({ modifies: 1 }) }),
  row('sequential write', 420, { ...fresh, keys: 'sequential', work: points('set', 'sequential') }),
  row('random read', 212, { ...get, ...loaded }),
  row('delete', 348, { ...loaded, work: points('delete') }),
  row('large values (4 KB)', 4900, {
    ...fresh,
    valueBytes: 4096,
    entries: count(1000, 10_000),
    calls: count(1000, 10_000),
  }),
  row('small values (8 B)', 438, { ...fresh, valueBytes: 8 }),
);
