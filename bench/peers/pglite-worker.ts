/**
 * The worker behind PGlite in the page, made as its documentation shows (pglite.dev/docs/multi-tab-worker).
 *
 * Beyond that it closes the database on request: the library only ends its worker, and nothing reports when the files of an
 * ended worker can be opened again.
 */

import type { PGlite } from '@electric-sql/pglite';
import { worker } from '@electric-sql/pglite/worker';
import { startPglite } from './pglite.ts';

let database: PGlite | undefined;

worker({
  init: async ({ meta }) => {
    database = await startPglite(meta.name, meta.relaxed);
    return database;
  },
});

addEventListener('message', async ({ data }: MessageEvent<{ readonly type: string }>) => {
  if (data.type !== 'bench-close') return;
  await database?.close();
  postMessage({ type: 'bench-closed' });
});
