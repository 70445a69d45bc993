// `npm run test:kill -- [--tabs] [--engine firefox|webkit|chromium] [--runtime node|bun|deno] [--rounds N]`: the crash test of
// the browser suite, or the kill loop of a browser engine or of a server runtime, over many rounds: 50, or `VARVE_KILL_ROUNDS`.
// With `--tabs`, the kill loop of tabs that share a store: 200 leaders, in one engine or in all of them.
// `VARVE_SEED` runs the rounds of an earlier loop again.

import { parseArgs } from 'node:util';
import { ENGINE_NAMES } from './engines.mjs';
import { main, Problem, run } from './tools.mjs';

const RUNTIMES = ['node', 'bun', 'deno'];

await main(() => {
  const { values } = parseArgs({
    options: {
      tabs: { type: 'boolean' },
      engine: { type: 'string' },
      runtime: { type: 'string' },
      rounds: { type: 'string' },
    },
  });
  const { tabs, engine, runtime, rounds = process.env['VARVE_KILL_ROUNDS'] ?? (tabs ? '200' : '50') } = values;
  if (engine !== undefined && !ENGINE_NAMES.some((name) => name === engine)) {
    throw new Problem(`--engine is ${ENGINE_NAMES.join(', ')}, not ${engine}.`);
  }
  if (runtime !== undefined && !RUNTIMES.includes(runtime)) {
    throw new Problem(`--runtime is ${RUNTIMES.join(', ')}, not ${runtime}.`);
  }
  const env = { VARVE_KILL_ROUNDS: rounds };
  const engines = engine === undefined ? {} : { VARVE_ENGINES: engine };
  if (tabs)
    return run('node', ['scripts/test.mjs', 'engines', 'tabs-kill'], {
      env: { ...engines, VARVE_LEADER_KILLS: rounds },
    });
  if (engine !== undefined)
    return run('node', ['scripts/test.mjs', 'engines', 'engines/kill'], { env: { ...env, ...engines } });
  if (runtime !== undefined)
    return run('node', ['scripts/test.mjs', 'runtimes', 'kill'], { env: { ...env, VARVE_RUNTIME: runtime } });
  return run('node', ['scripts/test.mjs', 'browser', 'crash'], { env });
});
