/** Loads every suite, in the order in which they run. A new one is a file that registers itself, and its line here. */

import './core.ts';
import './ycsb.ts';
import './db-bench.ts';
import './beyond.ts';
import './compaction.ts';
import './micro.ts';
import './scale.ts';
import './callers.ts';
import './lives/suite.ts';
