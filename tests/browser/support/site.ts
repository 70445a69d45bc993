// The site that the browser tests open. It has the fixture pages at / and the package at /varve/, all under the strict policy that the
// package promises to work under. Its port is random, so test files never share an origin.

import { join } from 'node:path';
import { STRICT_POLICY, serve } from '../../../scripts/server.mjs';
import { root } from '../../../scripts/tools.mjs';

/** Where the bundled fixture pages are. */
export const PAGES = join(root, 'build', 'test-pages');

export interface Site {
  readonly origin: string;
  close(): Promise<void>;
}

/** Serves the fixtures and the package on a free port. */
export function startSite(): Promise<Site> {
  return serve({
    mounts: [
      { path: '/', folder: PAGES, headers: STRICT_POLICY },
      { path: '/varve/', folder: join(root, 'dist'), headers: STRICT_POLICY },
    ],
  });
}
