/**
 * The core workloads of YCSB (Cooper et al., "Benchmarking cloud serving systems with YCSB", 2010), under their letters.
 *
 * Records are 1,000 bytes, YCSB's ten fields of 100 as one value; keys are drawn zipfian (scrambled, theta 0.99), in D among
 * the latest. Ranges of E are 1 to 100 entries long, evenly. Counts are small beside YCSB's own: `--scale` makes them larger.
 */

import { type Loop, registerLoops } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import { AWAITED, base, points } from './fixtures.ts';

const records: Loop = {
  ...base,
  valueBytes: 1000,
  load: 'anywhere',
  entries: count(5000, 50_000),
  calls: count(5000, 50_000),
  // Inserts of three rounds of both suites that insert fit into this; what does not is an update.
  reserve: count(2000, 20_000),
};
const SUITES: Readonly<Record<string, readonly [title: string, more: Partial<Loop>]>> = {
  a: ['50% reads, 50% updates', { work: points({ reads: 0.5 }, 'zipfian') }],
  b: ['95% reads, 5% updates', { work: points({ reads: 0.95 }, 'zipfian') }],
  c: ['reads', { work: points({ reads: 1 }, 'zipfian') }],
  d: ['95% reads of the latest, 5% inserts', { work: points({ reads: 0.95, inserts: 0.05 }, 'latest') }],
  e: [
    '95% ranges of 1 to 100, 5% inserts',
    { accesses: AWAITED, calls: count(1000, 5000), work: points({ scans: 0.95, size: 100, inserts: 0.05 }, 'zipfian') },
  ],
  f: [
    '50% reads, 50% reads followed by an update of the key',
    { accesses: AWAITED, work: points({ reads: 0.5, modifies: 0.5 }, 'zipfian') },
  ],
};
for (const [letter, [title, more]] of Object.entries(SUITES)) {
  registerLoops({ name: `ycsb-${letter}`, title }, { ...records, ...more });
}
