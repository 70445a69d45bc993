// `npm run fuzz -- [--seconds S] [--seed N] [--minutes M]`: runs the fuzz targets of the engine for S seconds each
// (20), from a fresh seed or from N, then its property tests over and over with fresh inputs for M minutes (5; 0 for
// none). Optimised, but with every assertion and overflow check on. Each target prints its iterations and its seed; a
// failure prints the seed that has it again, or, from proptest, the smallest input.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setup } from './setup.mjs';
import { main, Problem, root, run } from './tools.mjs';

const CHECKED_RELEASE = {
  CARGO_PROFILE_RELEASE_LTO: 'off',
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
  CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS: 'true',
  CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS: 'true',
};

/** The integration tests of the engine that hold properties. */
function propertyTests() {
  const folder = join(root, 'crates', 'varve', 'tests');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.rs') && readFileSync(join(folder, file), 'utf8').includes('proptest!'))
    .map((file) => file.slice(0, -'.rs'.length));
}

await main(async () => {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '20' },
      seed: { type: 'string', default: String(Date.now()) },
      minutes: { type: 'string', default: '5' },
    },
  });
  const [seconds, seed, minutes] = [values.seconds, values.seed, values.minutes].map(Number);
  if (!(Number.isInteger(seconds) && seconds >= 0)) throw new Problem('`--seconds` takes a whole number.');
  if (!(Number.isSafeInteger(seed) && seed >= 0)) throw new Problem('`--seed` takes a whole number.');
  if (!(minutes >= 0)) throw new Problem('`--minutes` takes a number.');
  await setup({ rust: true });
  const target = join(root, 'target', 'fuzz');
  const cargo = (/** @type {string[]} */ tests, /** @type {Record<string, string>} */ env = {}) =>
    run('cargo', ['test', '--quiet', '--release', '--package', 'varve', '--target-dir', target, ...tests], {
      env: { ...CHECKED_RELEASE, ...env },
    });
  if (seconds > 0) {
    console.log(`Fuzz targets from seed ${seed}, ${seconds} seconds each.`);
    await cargo(['--test', 'fuzz_targets'], { VARVE_FUZZ_SECONDS: String(seconds), VARVE_FUZZ_SEED: String(seed) });
  }
  if (minutes === 0) return;
  const tests = propertyTests().flatMap((name) => ['--test', name]);
  await cargo([...tests, '--no-run']);
  const end = performance.now() + minutes * 60_000;
  let rounds = 0;
  do {
    await cargo(tests);
    rounds += 1;
  } while (performance.now() < end);
  console.log(`${rounds} rounds of ${tests.length / 2} property tests passed.`);
});
