/** The worker behind PGlite in the page, made as its documentation shows (pglite.dev/docs/multi-tab-worker). */

import { worker } from '@electric-sql/pglite/worker';
import type { PgliteMeta } from './pglite.ts';
import { startPglite } from './pglite-files.ts';

worker({
  init: ({ meta }) => {
    const { name, relaxed }: PgliteMeta = meta;
    return startPglite(name, relaxed);
  },
});
