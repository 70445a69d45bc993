// The kill loop: the crash test of the browser suite over fifty rounds, or over `VARVE_KILL_ROUNDS`. `VARVE_SEED` runs
// the rounds of an earlier loop again.

import { main, run } from './tools.mjs';

await main(() =>
  run('node', ['scripts/test.mjs', 'browser', 'crash'], {
    env: { VARVE_KILL_ROUNDS: process.env['VARVE_KILL_ROUNDS'] ?? '50' },
  }),
);
