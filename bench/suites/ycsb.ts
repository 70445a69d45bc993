/**
 * The core workloads of YCSB (Cooper et al., "Benchmarking cloud serving systems with YCSB", 2010), under their letters.
 *
 * Records are 1,000 bytes, YCSB's ten fields of 100 as one value; keys are drawn zipfian (scrambled, theta 0.99), in D among
 * the latest. Ranges of E are 1 to 100 entries long, evenly. Counts are small beside YCSB's own: `--scale` makes them larger.
 */

import type { Suite } from '../core/workloads.ts';
import { base, count, EVERYWHERE } from './base.ts';

/** Inserts of three rounds of both suites that insert fit into this; what does not is an update. */
const RESERVE = count(2000, 20_000);

const records = {
  ...base,
  family: 'beyond',
  quick: false,
  accesses: EVERYWHERE,
  valueBytes: 1000,
  load: 'anywhere',
  entries: count(5000, 50_000),
  calls: count(5000, 50_000),
  reserve: RESERVE,
} as const;

export const YCSB: readonly Suite[] = [
  {
    ...records,
    name: 'ycsb-a',
    title: '50% reads, 50% updates',
    work: { kind: 'points', mix: { reads: 0.5 }, order: 'zipfian' },
  },
  {
    ...records,
    name: 'ycsb-b',
    title: '95% reads, 5% updates',
    work: { kind: 'points', mix: { reads: 0.95 }, order: 'zipfian' },
  },
  {
    ...records,
    name: 'ycsb-c',
    title: 'reads',
    work: { kind: 'points', mix: { reads: 1 }, order: 'zipfian' },
  },
  {
    ...records,
    name: 'ycsb-d',
    title: '95% reads of the latest, 5% inserts',
    work: { kind: 'points', mix: { reads: 0.95, inserts: 0.05 }, order: 'latest' },
  },
  {
    ...records,
    name: 'ycsb-e',
    title: '95% ranges of 1 to 100, 5% inserts',
    accesses: ['worker', 'page'],
    calls: count(1000, 5000),
    work: {
      kind: 'mix',
      shares: { inserts: 0.05, scans: 0.95, modifies: 0 },
      order: 'zipfian',
      size: 100,
    },
  },
  {
    ...records,
    name: 'ycsb-f',
    title: '50% reads, 50% reads followed by an update of the key',
    accesses: ['worker', 'page'],
    work: { kind: 'mix', shares: { inserts: 0, scans: 0, modifies: 0.5 }, order: 'zipfian', size: 1 },
  },
];
