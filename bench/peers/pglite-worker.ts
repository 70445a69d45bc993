/**
 * The worker behind PGlite in the page, made as its documentation shows (pglite.dev/docs/multi-tab-worker).
 *
 * Beyond that it closes the database when it is asked to: the library ends its worker instead, and nothing tells when the
 * files of a worker that was ended are free to be opened again.
 */

import type { PGlite } from '@electric-sql/pglite';
import { worker } from '@electric-sql/pglite/worker';
import type { PgliteMeta } from './pglite.ts';
import { startPglite } from './pglite-files.ts';

let database: PGlite | undefined;

worker({
  init: async ({ meta }) => {
    const { name, relaxed }: PgliteMeta = meta;
    database = await startPglite(name, relaxed);
    return database;
  },
});

addEventListener('message', async ({ data }: MessageEvent<{ readonly type: string }>) => {
  if (data.type !== 'bench-close') return;
  await database?.close();
  postMessage({ type: 'bench-closed' });
});
