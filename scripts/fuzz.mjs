// `npm run fuzz -- [--seconds S] [--target NAME] [--seed N] [--minutes M]`: runs every fuzz target of the engine (or one) for S
// seconds (20) under libFuzzer. It keeps inputs that reach new code in target/fuzz/corpus and begins with those next time. Then it
// repeats the property tests with fresh inputs for M minutes (5; 0 for none). Optimised, but with every assertion and overflow check
// on. A failure leaves its input in target/fuzz/failures and prints how to reproduce it; proptest prints the smallest input. `npm run
// fuzz -- --api [--seconds S] [--seed N] [--place NAME] [--path PATH]`: the model fuzz of the JavaScript API instead, for S seconds
// over all places (60), or over one of them; a failure prints the `--path` that reproduces it.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setup } from './setup.mjs';
import { capture, main, Problem, root, run } from './tools.mjs';

const CHECKED_RELEASE = {
  CARGO_PROFILE_RELEASE_LTO: 'off',
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
  CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS: 'true',
  CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS: 'true',
};

/** The integration tests of the engine that contain properties. */
function propertyTests() {
  const folder = join(root, 'crates', 'varve', 'tests');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.rs') && readFileSync(join(folder, file), 'utf8').includes('proptest!'))
    .map((file) => file.slice(0, -'.rs'.length));
}

const target = join(root, 'target', 'fuzz');

/** The flags that `cargo fuzz --sanitizer none` passes: coverage without a sanitizer works on the stable toolchain. */
const COVERAGE = [
  '-Cpasses=sancov-module',
  '-Cllvm-args=-sanitizer-coverage-level=4',
  '-Cllvm-args=-sanitizer-coverage-inline-8bit-counters',
  '-Cllvm-args=-sanitizer-coverage-pc-table',
  '-Cllvm-args=-sanitizer-coverage-trace-compares',
  '--cfg fuzzing',
].join(' ');

/** The names of the targets, from their table. */
function targetNames() {
  const source = readFileSync(join(root, 'crates', 'varve-fuzz', 'src', 'main.rs'), 'utf8');
  return [...source.matchAll(/^ {4}\("([a-z-]+)",/gm)].map(([, name = '']) => name);
}

/**
 * @param {string[]} names
 * @param {number} seconds
 * @param {number} seed
 */
async function fuzz(names, seconds, seed) {
  if (capture('c++', ['--version']) === undefined) {
    throw new Problem('libFuzzer needs a C++ compiler. On Debian: apt-get install -y g++');
  }
  const machine = /host: (.*)/.exec(capture('rustc', ['-vV']) ?? '')?.[1] ?? '';
  const manifest = join(root, 'crates', 'varve-fuzz', 'Cargo.toml');
  const cargo = ['build', '--quiet', '--release', '--manifest-path', manifest, '--target', machine];
  await run('cargo', [...cargo, '--target-dir', target], { env: { RUSTFLAGS: COVERAGE } });
  console.log(`${names.length} targets, ${seconds} seconds each, seed ${seed}.`);
  for (const name of names) {
    const corpus = join(target, 'corpus', name);
    const failures = join(target, 'failures', name);
    for (const folder of [corpus, failures]) mkdirSync(folder, { recursive: true });
    const limits = ['-max_len=65536', '-rss_limit_mb=1024', '-timeout=20', `-seed=${seed % 2 ** 31}`];
    const program = join(target, machine, 'release', 'varve-fuzz');
    const quiet = ['-verbosity=0', `-artifact_prefix=${failures}/`];
    const env = { VARVE_FUZZ_TARGET: name, VARVE_FUZZ_CORPUS: corpus };
    try {
      await run(program, [corpus, `-max_total_time=${seconds}`, ...limits, ...quiet], { env });
    } catch (error) {
      const again = `VARVE_FUZZ_TARGET=${name} ${program} ${failures}/<the input>`;
      throw new Problem(`The target ${name} failed. Have it again with: ${again}`, { cause: error });
    }
    console.log(`${name}: ${readdirSync(corpus).length} inputs kept`);
  }
}

/** The places of the model fuzz in Node, and in Chromium. */
const PLACES = { js: ['files', 'indexeddb', 'opfs', 'sync'], browser: ['chromium-opfs', 'chromium-indexeddb'] };

/**
 * The model fuzz of the JavaScript API: ordinary tests, for the requested time and from the requested seed.
 * @param {{ seconds: number, seed: number, place: string | undefined, path: string | undefined }} wish
 */
async function fuzzApi({ seconds, seed, place, path }) {
  const all = Object.values(PLACES).flat();
  if (place !== undefined && !all.includes(place)) throw new Problem(`\`--place\` takes one of ${all.join(', ')}.`);
  const suites = Object.entries(PLACES).filter(([, places]) => place === undefined || places.includes(place));
  const env = {
    VARVE_API_SECONDS: String(seconds),
    VARVE_API_SEED: String(seed % 2 ** 30),
    ...(place === undefined ? {} : { VARVE_API_PLACE: place }),
    ...(path === undefined ? {} : { VARVE_API_PATH: path }),
  };
  await run('node', ['scripts/test.mjs', ...suites.map(([suite]) => suite), 'api-fuzz'], { env });
}

await main(async () => {
  const { values } = parseArgs({
    options: {
      api: { type: 'boolean' },
      place: { type: 'string' },
      path: { type: 'string' },
      seconds: { type: 'string' },
      target: { type: 'string' },
      seed: { type: 'string', default: String(Date.now()) },
      minutes: { type: 'string', default: '5' },
    },
  });
  const seconds = Number(values.seconds ?? (values.api ? 60 : 20));
  const [seed, minutes] = [values.seed, values.minutes].map(Number);
  if (!(Number.isInteger(seconds) && seconds >= 0)) throw new Problem('`--seconds` takes a whole number.');
  if (!(Number.isSafeInteger(seed) && seed >= 0)) throw new Problem('`--seed` takes a whole number.');
  if (values.api) return fuzzApi({ seconds, seed, place: values.place, path: values.path });
  if (!(minutes >= 0)) throw new Problem('`--minutes` takes a number.');
  const all = targetNames();
  const names = values.target === undefined ? all : all.filter((name) => name === values.target);
  if (names.length === 0) throw new Problem(`\`--target\` takes one of ${all.join(', ')}.`);
  await setup({ rust: true });
  if (seconds > 0) await fuzz(names, seconds, seed);
  if (minutes === 0) return;
  const cargo = (/** @type {string[]} */ tests) =>
    run('cargo', ['test', '--quiet', '--release', '--package', 'varve-engine', '--target-dir', target, ...tests], {
      env: CHECKED_RELEASE,
    });
  const modules = propertyTests();
  const tests = ['--test', 'engine', '--', ...modules.map((name) => `${name}::`)];
  await cargo(['--test', 'engine', '--no-run']);
  const end = performance.now() + minutes * 60_000;
  let rounds = 0;
  do {
    await cargo(tests);
    rounds += 1;
  } while (performance.now() < end);
  console.log(`${rounds} rounds of the property tests in ${modules.length} files passed.`);
});
