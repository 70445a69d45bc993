/**
 * The suites of an LSM engine (S0 of the workloads) and what Varve promises beside them. Suites that read the same fixture
 * stand next to each other.
 */

import { type Loop, registerLoops } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import { AWAITED, inMemory, inTables, mixed, points, WORKER, writes } from './fixtures.ts';

/** The loops by the names of their suites: `db_bench` has other names for some. */
export const CORE: Record<string, { readonly title: string; readonly loop: Loop }> = {};

function suite(name: string, title: string, loop: Loop, quick = true): void {
  CORE[name] = { title, loop };
  registerLoops({ name, title, quick }, loop);
}

suite('write-seq', 'sequential write', { ...writes, keys: 'sequential', work: points('set', 'sequential') });
suite('write-rand', 'random write', writes);
suite('write-batch', 'batches of 100', { ...writes, calls: count(100, 500), work: { kind: 'batches', size: 100 } });
suite('read-seq-mem', 'sequential read, memtable', { ...inMemory, work: points('get', 'sequential') });
suite('read-rand-mem', 'random read, memtable', inMemory);
suite('read-seq-disk', 'sequential read, tables', { ...inTables, work: points('get', 'sequential') });
suite('read-rand-disk', 'random read, tables', inTables);
suite('read-miss', 'random read of absent keys, tables', { ...inTables, accesses: WORKER, work: points('miss') });
suite('range-100', 'ranges of 100', { ...inTables, calls: count(200, 1000), work: { kind: 'ranges', size: 100 } });
suite('range-500', 'ranges of 500', { ...inTables, calls: count(100, 1000), work: { kind: 'ranges', size: 500 } });
suite('scan', 'full scan', { ...inTables, accesses: AWAITED, calls: count(1, 3), work: { kind: 'scan' } }, false);
suite('mixed-70', '70% reads', { ...mixed, work: points({ reads: 0.7 }) });
suite('mixed-90', '90% reads', { ...mixed, work: points({ reads: 0.9 }) });
suite('delete', 'delete', { ...mixed, accesses: WORKER, calls: count(10_000, 50_000), work: points('delete') });

const few = count(1000, 5000);
const strict = { durability: 'strict', accesses: AWAITED, entries: few, calls: few } as const;
suite('strict-set', 'strict set (flushed before it resolves)', { ...writes, ...strict });

const tuples = { accesses: WORKER, keys: 'tuple' } as const;
suite('tuple-write', 'random write, tuple keys', { ...writes, ...tuples }, false);
suite('tuple-read', 'random read, tuple keys, memtable', { ...inMemory, ...tuples }, false);

const large = { accesses: WORKER, valueBytes: 4096, entries: count(1000, 4000) } as const;
suite('set-4k', 'random write of 4 KiB values', { ...writes, ...large, calls: count(1000, 4000) }, false);
suite('get-4k', 'random read of 4 KiB values, tables', { ...inTables, ...large, calls: count(5000, 20_000) }, false);

const many = { accesses: WORKER, entries: count(50_000, 200_000) } as const;
const thousands = { calls: count(50, 200), work: { kind: 'batches', size: 1000 } } as const;
const singles = { phase: 'single sets of 200 bytes', valueBytes: 200, calls: count(50_000, 200_000) } as const;
registerLoops(
  { name: 'load', title: 'bulk load by 1000, and by single sets' },
  { ...writes, ...many, ...thousands },
  { ...writes, ...many, ...singles },
);
suite('open', 'open and first get', { ...inTables, ...many, calls: count(3, 5), work: { kind: 'open' } }, false);
