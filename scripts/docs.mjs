// `npm run docs`: builds the documentation (docs/ and the documents beside it) into a site. `npm start` builds and serves it.

import { join } from 'node:path';
import { SITE } from './site.mjs';
import { isProgram, main, root, run } from './tools.mjs';

/** The site of the documentation; the demo and the benchmark are beside it. */
export const DOCS = join(SITE, 'docs');

/**
 * Writes the reference, then builds the site. A link to a page that does not exist fails the build.
 * @param {string} [to]
 */
export async function buildDocs(to = DOCS) {
  await run('node', [join(root, 'docs', '.vitepress', 'reference.mjs')]);
  await run('vitepress', ['build', join(root, 'docs'), '--outDir', to], { env: { NODE_ENV: 'production' } });
}

if (isProgram(import.meta.url)) await main(() => buildDocs());
