// `npm run test:kill -- [--engine firefox|webkit|chromium] [--runtime node|bun|deno] [--rounds N]`: the crash test of the
// browser suite, or the kill loop of a browser engine or of a server runtime, over many rounds: 50, or `VARVE_KILL_ROUNDS`.
// `VARVE_SEED` runs the rounds of an earlier loop again.

import { parseArgs } from 'node:util';
import { ENGINE_NAMES } from './engines.mjs';
import { main, Problem, run } from './tools.mjs';

const RUNTIMES = ['node', 'bun', 'deno'];

await main(() => {
  const { values } = parseArgs({
    options: { engine: { type: 'string' }, runtime: { type: 'string' }, rounds: { type: 'string' } },
  });
  const { engine, runtime, rounds = process.env['VARVE_KILL_ROUNDS'] ?? '50' } = values;
  if (engine !== undefined && !ENGINE_NAMES.some((name) => name === engine)) {
    throw new Problem(`--engine is ${ENGINE_NAMES.join(', ')}, not ${engine}.`);
  }
  if (runtime !== undefined && !RUNTIMES.includes(runtime)) {
    throw new Problem(`--runtime is ${RUNTIMES.join(', ')}, not ${runtime}.`);
  }
  const env = { VARVE_KILL_ROUNDS: rounds };
  if (engine !== undefined)
    return run('node', ['scripts/test.mjs', 'engines', 'kill'], { env: { ...env, VARVE_ENGINES: engine } });
  if (runtime !== undefined)
    return run('node', ['scripts/test.mjs', 'runtimes', 'kill'], { env: { ...env, VARVE_RUNTIME: runtime } });
  return run('node', ['scripts/test.mjs', 'browser', 'crash'], { env });
});
