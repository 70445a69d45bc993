/** All commands, in the order of the help. */

import { bench } from './bench.ts';
import { check, compact, repair } from './care.ts';
import type { Command } from './command.ts';
import { deleteKeys, get, ls, scan, set } from './entries.ts';
import { exportStore } from './export.ts';
import { importStore } from './import.ts';
import { stats } from './stats.ts';

export const COMMANDS: readonly Command[] = [
  ...[ls, get, set, deleteKeys, scan, stats],
  ...[check, repair, compact, exportStore, importStore, bench],
];
