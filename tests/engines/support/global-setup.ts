// Once a run: bundles the pages. The package itself is the built one, in dist/.

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildPages } from '../../../scripts/site.mjs';
import { root } from '../../../scripts/tools.mjs';
import { PAGES } from './site.ts';

export async function setup(): Promise<void> {
  if (!existsSync(join(root, 'dist', 'varve.wasm'))) {
    throw new Error('The package is not built: run `npm run test:engines`, or `npm run build` first.');
  }
  rmSync(PAGES, { recursive: true, force: true });
  for (const suite of ['browser', 'engines']) {
    await buildPages(join(root, 'tests', suite, 'fixtures'), PAGES, { minify: false });
  }
}
