// `npm run bench -- [options]`: builds the package and the benchmark page, then runs bench/targets/browser/cli.ts, which drives them.
// `npm run bench -- results` runs the browser's suites, fs and http, and writes docs/results.md (scripts/results.mjs).
// `npm run bench -- scale` runs bench/targets/browser/scale-cli.ts instead: millions of pairs, and reads while a compaction runs.
// `npm run bench -- cloudflare` runs bench/targets/durable-object/cli.ts: rows billed and time of sets in a Durable Object, on workerd.
// `npm run bench -- micro` runs bench/targets/fs/micro.ts in Node: single operations of the wasm build, in memory.
// `npm run bench -- fs` runs bench/targets/fs/cli.ts in Node: stores in files beside bare file calls, or beside SQLite and LevelDB.
// `npm run bench -- deno-kv` runs bench/targets/deno-kv/deno-kv.mjs in Deno: stores in Deno KV beside Deno KV itself.
// `npm run bench -- http` runs bench/targets/http/cli.ts: the HTTP handler under load on Node, Deno and workerd.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { build, DIST } from './build.mjs';
import { measureResults } from './results.mjs';
import { setup } from './setup.mjs';
import { main, root, run } from './tools.mjs';

/** @type {Record<string, string>} */
const OTHERS = {
  scale: join('targets', 'browser', 'scale-cli.ts'),
  micro: join('targets', 'fs', 'micro.ts'),
  fs: join('targets', 'fs', 'cli.ts'),
  http: join('targets', 'http', 'cli.ts'),
  cloudflare: join('targets', 'durable-object', 'cli.ts'),
};
const BROWSER = join('targets', 'browser', 'cli.ts');
const WITHOUT_BROWSER = ['micro', 'fs', 'http', 'cloudflare', 'deno-kv'];

/** On a database in a folder that is removed afterwards. */
async function runInDeno() {
  const folder = mkdtempSync(join(tmpdir(), 'varve-bench-'));
  const allowed = [`--allow-read=${folder},${join(root, 'dist')}`, `--allow-write=${folder}`];
  const program = [join(root, 'bench', 'targets', 'deno-kv', 'deno-kv.mjs'), join(folder, 'kv.db')];
  try {
    await run('deno', ['run', '--no-prompt', '--no-config', '--no-lock', '--unstable-kv', ...allowed, ...program]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

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
    external: ['varve', 'varve/fs', 'varve/inline', 'varve/http', 'varve/synchronous'],
  });
  // Ctrl-C also reaches the child process, which writes the results it has: this waits for it.
  const wait = () => {};
  process.on('SIGINT', wait);
  await run('node', [outfile, ...args]).finally(() => process.off('SIGINT', wait));
}

await main(async () => {
  const args = process.argv.slice(2);
  const [first = '', ...rest] = args;
  const named = Object.hasOwn(OTHERS, first) ? OTHERS[first] : undefined;
  // Commands that only print or combine results need no browser, and no new build if one exists.
  const isPrinted = args.some((arg) => /^--(help|list|from)\b/.test(arg));
  await setup({ wasm: true, browser: !isPrinted && !WITHOUT_BROWSER.includes(first) });
  if (!isPrinted || !existsSync(DIST)) await build();
  if (first === 'deno-kv') await runInDeno();
  else if (first === 'results') {
    await measureResults(rest, runEntry, { fs: String(OTHERS['fs']), http: String(OTHERS['http']) });
  } else await runEntry(named ?? BROWSER, named === undefined ? args : rest);
});
