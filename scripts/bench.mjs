// `npm run bench -- [options]`: builds the package and the benchmark page, then runs bench/cli.ts, which drives them.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { build } from './build.mjs';
import { setup } from './setup.mjs';
import { main, Problem, root, run } from './tools.mjs';

await main(async () => {
  const entry = join(root, 'bench', 'cli.ts');
  if (!existsSync(entry)) throw new Problem('There is no bench/cli.ts.');
  await setup({ wasm: true, browser: true });
  await build();
  const outfile = join(root, 'build', 'bench-cli.mjs');
  await bundle({ entryPoints: [entry], outfile, bundle: true, format: 'esm', platform: 'node', packages: 'external' });
  await run('node', [outfile, ...process.argv.slice(2)]);
});
