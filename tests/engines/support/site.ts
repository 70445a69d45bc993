// The site of these tests. It has their pages and those of the browser tests at /, and the package at /varve/, all under the strict policy.
// Pages that nothing drives fetch their calls from it.

import { join } from 'node:path';
import { STRICT_POLICY, serve } from '../../../scripts/server.mjs';
import { root } from '../../../scripts/tools.mjs';
import type { EngineSite } from './engine.ts';
import { Remote } from './remote.ts';

/** Where the bundled pages are. */
export const PAGES = join(root, 'build', 'engine-pages');

/** Serves the pages and the package on a free port. */
export async function startSite(): Promise<EngineSite> {
  const remote = new Remote();
  const site = await serve({
    mounts: [
      { path: '/', folder: PAGES, headers: STRICT_POLICY },
      { path: '/varve/', folder: join(root, 'dist'), headers: STRICT_POLICY },
    ],
    respond: (path, request, response) => remote.respond(path, request, response),
  });
  return { ...site, remote };
}
