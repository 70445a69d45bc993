// `npm run test:turn -- [--megabytes N]`: the tests of one synchronous turn, over files in Node and over OPFS in Chromium, with turns of
// N megabytes (2,000). `VARVE_SEED` repeats the data of an earlier run.

import { parseArgs } from 'node:util';
import { main, Problem, run } from './tools.mjs';

await main(() => {
  const { values } = parseArgs({ options: { megabytes: { type: 'string', default: '2000' } } });
  const megabytes = Number(values.megabytes);
  if (!(Number.isInteger(megabytes) && megabytes > 0)) throw new Problem('`--megabytes` takes a whole number from 1.');
  return run('node', ['scripts/test.mjs', 'runtimes', 'browser', 'turn.test'], {
    env: { VARVE_TURN_MEGABYTES: String(megabytes) },
  });
});
