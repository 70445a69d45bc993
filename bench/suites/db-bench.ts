/**
 * The names of LevelDB's and RocksDB's `db_bench`. Most are what another suite does already and run only when they are
 * asked for; `readwhilewriting` is one of the suites of several callers (callers/).
 */

import type { Suite } from '../core/workloads.ts';
import { count, inTables, mixed } from './base.ts';
import { CORE } from './core.ts';

/** The same suite under the name that `db_bench` has for it. */
function same(as: string, name: string): Suite {
  const suite = CORE.find((known) => known.name === as);
  if (suite === undefined) throw new Error(`There is no suite ${as}.`);
  return { ...suite, name, title: `${suite.title} (${as})`, quick: false, asked: true, family: 'beyond' };
}

export const DB_BENCH: readonly Suite[] = [
  same('write-seq', 'fillseq'),
  same('write-rand', 'fillrandom'),
  same('read-rand-disk', 'readrandom'),
  same('scan', 'readseq'),
  same('delete', 'deleterandom'),
  {
    ...inTables,
    family: 'beyond',
    name: 'seekrandom',
    title: 'seek to a random key and read the entry there',
    quick: false,
    calls: count(5000, 50_000),
    work: { kind: 'ranges', size: 1 },
  },
  {
    ...mixed,
    family: 'beyond',
    name: 'overwrite',
    title: 'random write over a loaded store',
    quick: false,
    calls: count(10_000, 50_000),
    work: { kind: 'points', mix: 'set', order: 'uniform' },
  },
];
