// `npm run fuzz -- [--minutes M]`: runs the property tests of the engine (decoders fed with arbitrary and damaged bytes,
// models beside the real thing) over and over with fresh inputs, optimised but with every assertion and overflow check
// on, until the time is over or an input fails; proptest prints the smallest such input.

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
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '5' } } });
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Problem('`--minutes` takes a number above 0.');
  await setup({ rust: true });
  const tests = propertyTests().flatMap((name) => ['--test', name]);
  const target = join(root, 'target', 'fuzz');
  const cargo = (/** @type {string[]} */ ...more) =>
    run('cargo', ['test', '--quiet', '--release', '--package', 'varve', '--target-dir', target, ...tests, ...more], {
      env: CHECKED_RELEASE,
    });
  await cargo('--no-run');
  const end = performance.now() + minutes * 60_000;
  let rounds = 0;
  do {
    await cargo();
    rounds += 1;
  } while (performance.now() < end);
  console.log(`${rounds} rounds of ${tests.length / 2} property tests passed.`);
});
