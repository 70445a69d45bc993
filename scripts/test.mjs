// `npm test`: all suites, or the named ones; further arguments go to the test runner: `node scripts/test.mjs browser
// crash` runs the browser tests whose file has that name.
// Every suite runs, also after one has failed; the last line is the total of all.

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildPackage, buildWasm } from './build.mjs';
import { setup } from './setup.mjs';
import { main, Problem, root, run, step } from './tools.mjs';

/** @typedef {{ passed: number, failed: number }} Totals */

/** @type {Record<string, () => Promise<Totals>>} */
const SUITES = {
  rust: () => cargoTest(),
  js: () => vitest('js'),
  browser: () => vitest('browser'),
  engines: () => vitest('engines'),
  runtimes: () => vitest('runtimes'),
  packaging: () => vitest('packaging'),
};

/** The suites that drive a browser. */
const IN_BROWSER = new Set(['browser', 'packaging']);

const given = process.argv.slice(2).filter((name) => name !== '--');
const named = given.filter((name) => name in SUITES);
const extra = given.filter((name) => !(name in SUITES));

/** How long, in seconds, the simulator runs fresh seeds and each fuzz target runs; other values may be given in the environment. */
const TIMES = { VARVE_SIM_SECONDS: '60', VARVE_FUZZ_SECONDS: '10' };

/**
 * A failing property test is reduced within a minute, and without a backtrace of each of its thousands of failures. If the caller
 * asks for backtraces, those alone would take hours.
 */
const FAILING = { RUST_BACKTRACE: '0', PROPTEST_MAX_SHRINK_TIME: '60000' };

/** The engine and the simulator, natively. The wasm boundary is tested by the other suites, as wasm. */
async function cargoTest() {
  const times = Object.fromEntries(Object.entries(TIMES).map(([name, value]) => [name, process.env[name] ?? value]));
  const totals = { passed: 0, failed: 0 };
  const onLine = (/** @type {string} */ line) => {
    const [, passed, failed] = /test result: .*?(\d+) passed; (\d+) failed/.exec(line) ?? [];
    totals.passed += Number(passed ?? 0);
    totals.failed += Number(failed ?? 0);
  };
  await run(
    'cargo',
    ['test', '--workspace', '--exclude', 'varve-wasm', '--exclude', 'varve-tools', '--no-fail-fast', ...extra],
    { onLine, env: { ...FAILING, ...times } },
  ).catch((error) => {
    console.error(error.message);
    totals.failed ||= 1;
  });
  return totals;
}

/**
 * One project of vitest.config.ts.
 * @param {string} project
 * @returns {Promise<Totals>}
 */
async function vitest(project) {
  const file = join(root, 'test-results', `${project}.json`);
  mkdirSync(join(root, 'test-results'), { recursive: true });
  rmSync(file, { force: true });
  // A given name may belong to a test of another suite; without a name, a suite with no test is a mistake.
  const filter = extra.length > 0 ? ['--passWithNoTests', ...extra] : [];
  const output = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const ok = await run('vitest', ['run', '--project', project, ...filter, ...output]).then(
    () => true,
    () => false,
  );
  if (!existsSync(file)) return { passed: 0, failed: ok ? 0 : 1 };
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(file, 'utf8'));
  // A file that does not load, or an unhandled rejection, fails a run in which no test failed.
  return { passed: numPassedTests, failed: numFailedTests || (ok ? 0 : 1) };
}

await main(async () => {
  const suites = named.length > 0 ? named : Object.keys(SUITES);
  await setup({
    rust: true,
    wasm: suites.some((name) => name !== 'rust'),
    browser: suites.some((name) => IN_BROWSER.has(name)),
    engines: suites.includes('engines'),
  });
  if (suites.some((name) => name !== 'rust')) {
    await step('engine', buildWasm);
    await step('package', buildPackage);
  }
  const sum = { passed: 0, failed: 0 };
  for (const name of suites) {
    const totals = await step(name, /** @type {() => Promise<Totals>} */ (SUITES[name]));
    console.log(`${name}: ${totals.passed} passed, ${totals.failed} failed\n`);
    sum.passed += totals.passed;
    sum.failed += totals.failed;
  }
  if (sum.passed + sum.failed === 0) throw new Problem('No test ran.');
  console.log(`${sum.passed} passed, ${sum.failed} failed`);
  if (sum.failed > 0) process.exitCode = 1;
});
