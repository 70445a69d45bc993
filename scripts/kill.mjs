// `npm run test:kill -- [--runtime node|bun|deno] [--rounds N]`: the crash test of the browser suite, or the kill loop of a
// server runtime, over many rounds: 50, or `VARVE_KILL_ROUNDS`. `VARVE_SEED` runs the rounds of an earlier loop again.

import { parseArgs } from 'node:util';
import { main, Problem, run } from './tools.mjs';

await main(() => {
  const { values } = parseArgs({ options: { runtime: { type: 'string' }, rounds: { type: 'string' } } });
  const { runtime, rounds = process.env['VARVE_KILL_ROUNDS'] ?? '50' } = values;
  if (runtime !== undefined && !['node', 'bun', 'deno'].includes(runtime)) {
    throw new Problem(`--runtime is node, bun or deno, not ${runtime}.`);
  }
  const suite = runtime === undefined ? ['browser', 'crash'] : ['runtimes', 'kill'];
  const env = { VARVE_KILL_ROUNDS: rounds, ...(runtime === undefined ? {} : { VARVE_RUNTIME: runtime }) };
  return run('node', ['scripts/test.mjs', ...suite], { env });
});
