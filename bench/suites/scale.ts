/**
 * The suite `scale`: millions of pairs of 32 + 32 bytes, phase by phase (S2 of the workloads). 2 million, or as many as `--entries`
 * or `--scale` say: S2 has 2, 4, 10 and 30 million. A round makes all its calls, however long they take.
 *
 * Its readers beside writers are the suite `concurrent`, its transactions of 10,000 `scale-txn`, both with the same `--entries`.
 */

import { type Loop, registerLoops } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import { base, points, WORKER } from './fixtures.ts';

const PAIRS = count(20_000, 2_000_000);
const pairs: Loop = {
  ...base,
  ...{ accesses: WORKER, keyBytes: 32, valueBytes: 32, load: 'anywhere', entries: PAIRS, calls: PAIRS, whole: true },
};

registerLoops(
  { name: 'scale', title: '2 million pairs, phase by phase (--entries or --scale for more)', asked: true },
  { ...pairs, phase: 'write', load: 'nothing', fresh: true },
  { ...pairs, phase: 'read', work: points('get') },
  { ...pairs, phase: 'read after reopen', reopened: true, work: points('get') },
  { ...pairs, phase: 'iterate', calls: count(1, 1), work: { kind: 'scan' } },
  { ...pairs, phase: 'ranges of 100', calls: count(200, 5000), work: { kind: 'ranges', size: 100 } },
  { ...pairs, phase: '5 reads for each write', work: points({ reads: 5 / 6 }) },
  { ...pairs, phase: 'open', calls: count(3, 5), work: { kind: 'open' } },
  { ...pairs, phase: 'delete', work: points('delete') },
  { ...pairs, phase: 'read, compacted', load: 'tables', work: points('get') },
);
