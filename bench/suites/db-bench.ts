/**
 * The names of LevelDB's and RocksDB's `db_bench`. Most are what another suite does already and run only when they are
 * asked for; `readwhilewriting` is one of the suites of several callers (callers.ts).
 */

import { registerLoops } from '../core/loops.ts';
import { count } from '../core/suite.ts';
import { CORE } from './core.ts';
import { inTables, mixed } from './fixtures.ts';

const SAME = { fillseq: 'write-seq', fillrandom: 'write-rand', readrandom: 'read-rand-disk', readseq: 'scan' };
for (const [name, as] of [...Object.entries(SAME), ['deleterandom', 'delete'] as const]) {
  const known = CORE[as];
  if (known === undefined) throw new Error(`There is no suite ${as}.`);
  registerLoops({ name, title: `${known.title} (${as})`, asked: true }, known.loop);
}
registerLoops(
  { name: 'seekrandom', title: 'seek to a random key and read the entry there' },
  { ...inTables, calls: count(5000, 50_000), work: { kind: 'ranges', size: 1 } },
);
registerLoops({ name: 'overwrite', title: 'random write, loaded store' }, { ...mixed, calls: count(10_000, 50_000) });
