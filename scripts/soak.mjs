// `npm run test:soak -- [--minutes M]`: the soak, over files and memory in Node and over OPFS and IndexedDB in Chromium, for M minutes
// altogether (10). `VARVE_SEED` repeats the data of an earlier one.

import { parseArgs } from 'node:util';
import { main, Problem, run } from './tools.mjs';

await main(() => {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
  const minutes = Number(values.minutes);
  if (!(Number.isInteger(minutes) && minutes > 0)) throw new Problem('`--minutes` takes a whole number from 1.');
  return run('node', ['scripts/test.mjs', 'runtimes', 'browser', 'soak.test'], {
    env: { VARVE_SOAK_MINUTES: String(minutes) },
  });
});
