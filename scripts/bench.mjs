// `npm run bench -- [options]`: builds the package and the benchmark page, then runs bench/targets/browser/cli.ts, which drives it.
// `npm run bench -- NAME [options]` runs another target of bench/targets: `fs`, `http`, `visit`.
// `npm run bench -- scale` is the suite `scale` in the browser, `npm run bench -- micro` the suite `micro` in Node.
// `npm run bench -- adapters` measures the adapters beside their originals (scripts/bench-adapters.mjs), `npm run bench -- encryption` an
// encrypted store beside a plain one (scripts/bench-encryption.mjs).
// `npm run bench -- results` runs the browser's suites, fs, http and visit, and writes docs/results.md (scripts/results.mjs).

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { benchAdapters } from './bench-adapters.mjs';
import { benchEncryption } from './bench-encryption.mjs';
import { build, DIST } from './build.mjs';
import { measureResults } from './results.mjs';
import { setup } from './setup.mjs';
import { main, root, run } from './tools.mjs';

const target = (/** @type {string} */ folder) => join('targets', folder, 'cli.ts');
/** Commands in Node. @type {Record<string, string>} */
const IN_NODE = { fs: target('fs'), micro: target('fs'), http: target('http'), visit: target('visit') };

/**
 * The flags of a command that is a suite of another one.
 * @type {Record<string, (args: string[]) => string[]>}
 */
const SUITES = {
  micro: (args) => ['--suite', 'micro', ...args],
  scale: (args) => [
    ...['--suite', 'scale', '--engine', 'varve-sync'],
    ...args.map((arg) => arg.replace(/^--pairs/, '--entries')),
  ],
};

/**
 * Bundles a file of bench/ and runs it with the package as it was built, not its sources.
 * @param {string} entry
 * @param {string[]} args
 */
async function runEntry(entry, args) {
  const outfile = join(root, 'build', 'bench-cli.mjs');
  await bundle({
    entryPoints: [join(root, 'bench', entry)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    // Node 20 has no `using`, which the suites use.
    target: 'node20',
    packages: 'external',
    external: ['varve', 'varve/*'],
  });
  // Ctrl-C also reaches the child process, which writes the results it has: this waits for it.
  const wait = () => {};
  process.on('SIGINT', wait);
  await run('node', [outfile, ...args]).finally(() => process.off('SIGINT', wait));
}

await main(async () => {
  const args = process.argv.slice(2);
  const [first = '', ...rest] = args;
  const flags = SUITES[first]?.(rest) ?? rest;
  // Commands that only print or combine results need no browser, and no new build if one exists.
  const isPrinted = args.some((arg) => /^--(help|list|from)\b/.test(arg));
  const inNode = Object.hasOwn(IN_NODE, first) ? IN_NODE[first] : undefined;
  await setup({ wasm: true, browser: !isPrinted && (inNode === undefined || first === 'visit') });
  if (!isPrinted || !existsSync(DIST)) await build();
  if (first === 'results') await measureResults(rest, runEntry, target);
  else if (first === 'adapters') await benchAdapters(rest);
  else if (first === 'encryption') await benchEncryption(rest);
  else if (inNode !== undefined) await runEntry(inNode, flags);
  else await runEntry(target('browser'), Object.hasOwn(SUITES, first) ? flags : args);
});
