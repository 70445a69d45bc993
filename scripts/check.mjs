// `npm run check`: formatting, lints and types of both languages, imports between rooms, the sizes of the package, and whether every
// shown figure is a measured one. `npm run fix` fixes what a tool can fix.
// Every check runs, also after one has failed, so that one run shows all there is to do.

import { buildPackage, buildWasm, DIST } from './build.mjs';
import { checkResults } from './results.mjs';
import { setup } from './setup.mjs';
import { printSizes } from './sizes.mjs';
import { main, Problem, run, step } from './tools.mjs';

const fix = process.argv.includes('--fix');
const clippy = ['clippy', '--quiet', '--all-targets'];
const boundary = ['--package', 'varve-wasm', '--package', 'varve-tools'];
const without = ['--exclude', 'varve-wasm', '--exclude', 'varve-tools'];
const deny = ['--', '--deny', 'warnings'];

/**
 * A crate outside the workspace, whose dependencies are too heavy to lint it here.
 * @param {string} crate
 * @returns {[string, () => Promise<void>]}
 */
const outside = (crate) => {
  const manifest = ['--manifest-path', `crates/${crate}/Cargo.toml`];
  return [`rustfmt, ${crate}`, () => run('cargo', ['fmt', ...manifest, ...(fix ? [] : ['--check'])])];
};

/** @type {[string, () => Promise<void>][]} */
const CHECKS = [
  ['rustfmt', () => run('cargo', ['fmt', '--all', ...(fix ? [] : ['--check'])])],
  ...['varve-fuzz', 'varve-bench'].map(outside),
  ['clippy', () => run('cargo', [...clippy, '--workspace', ...without, ...deny])],
  // The boundary is compiled for its target.
  ['clippy, wasm', () => run('cargo', [...clippy, ...boundary, '--target', 'wasm32-unknown-unknown', ...deny])],
  [
    'rustdoc',
    () => run('cargo', ['doc', '--quiet', '--workspace', '--no-deps'], { env: { RUSTDOCFLAGS: '-Dwarnings' } }),
  ],
  ['biome', () => run('biome', fix ? ['check', '--write'] : ['ci', '--colors=off'])],
  // Types need the declarations that the engine's build writes.
  ['engine', buildWasm],
  [
    'rooms',
    () =>
      run('depcruise', [
        '--config',
        '.dependency-cruiser.mjs',
        '--no-cache',
        'js/src',
        'demo',
        'scripts',
        'bench',
        'tests',
      ]),
  ],
  ['tsc', () => run('tsc', ['--project', 'tsconfig.json'])],
  ['package', buildPackage],
  ['results', checkResults],
  ['sizes', async () => printSizes(DIST).failIfOver()],
];

await main(async () => {
  await setup({ wasm: true });
  const failed = [];
  for (const [name, check] of CHECKS) {
    try {
      await step(name, check);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      console.error(error.message);
      failed.push(name);
    }
  }
  if (failed.length > 0)
    throw new Problem(`Failed: ${failed.join(', ')}. \`npm run fix\` corrects formatting and some lints.`);
  console.log('All checks passed.');
});
