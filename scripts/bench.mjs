// `npm run bench -- [options]`: builds the package and the benchmark page, then runs bench/cli.ts, which drives them.
// `npm run bench -- scale` runs bench/scale/cli.ts instead: millions of pairs, and reads while a compaction runs.
// `npm run bench -- cloudflare` runs bench/cloudflare/cli.ts: rows billed and time of sets in a Durable Object, on workerd.
// `npm run bench -- micro` runs bench/micro.ts in Node: single operations of the wasm build, in memory.
// `npm run bench -- fs` runs bench/fs/cli.ts in Node: stores in files beside bare file calls, or beside SQLite and LevelDB.
// `npm run bench -- deno-kv` runs bench/deno-kv.mjs in Deno: stores in Deno KV beside Deno KV itself.
// `npm run bench -- http` runs bench/http/cli.ts: the HTTP handler under load on Node, Deno and workerd.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { build } from './build.mjs';
import { setup } from './setup.mjs';
import { main, root, run } from './tools.mjs';

/** @type {Record<string, string>} */
const OTHERS = {
  scale: join('scale', 'cli.ts'),
  micro: 'micro.ts',
  fs: join('fs', 'cli.ts'),
  http: join('http', 'cli.ts'),
  cloudflare: join('cloudflare', 'cli.ts'),
};
const WITHOUT_BROWSER = ['micro', 'fs', 'http', 'cloudflare', 'deno-kv'];

/** On a database in a folder that goes with it. */
async function runInDeno() {
  const folder = mkdtempSync(join(tmpdir(), 'varve-bench-'));
  const allowed = [`--allow-read=${folder},${join(root, 'dist')}`, `--allow-write=${folder}`];
  const program = [join(root, 'bench', 'deno-kv.mjs'), join(folder, 'kv.db')];
  try {
    await run('deno', ['run', '--no-prompt', '--no-config', '--no-lock', '--unstable-kv', ...allowed, ...program]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

await main(async () => {
  const [first, ...rest] = process.argv.slice(2);
  const named = first !== undefined && Object.hasOwn(OTHERS, first) ? OTHERS[first] : undefined;
  const entry = join(root, 'bench', named ?? 'cli.ts');
  await setup({ wasm: true, browser: !WITHOUT_BROWSER.includes(first ?? '') });
  await build();
  if (first === 'deno-kv') {
    await runInDeno();
    return;
  }
  const outfile = join(root, 'build', 'bench-cli.mjs');
  await bundle({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    // Node 20 has no `using`, which the suites are written with.
    target: 'node20',
    packages: 'external',
    // The package as it was built, not its sources.
    external: ['varve', 'varve/fs', 'varve/here', 'varve/http', 'varve/sync'],
  });
  await run('node', [outfile, ...(named === undefined ? process.argv.slice(2) : rest)]);
});
