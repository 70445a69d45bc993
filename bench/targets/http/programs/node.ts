/** A store in files behind srvx, on Node: the form of docs/guide/http.md. */

import process from 'node:process';
import { serve } from 'srvx';
import { open } from 'varve';
import { files } from 'varve/fs';
import { createHandler } from 'varve/http';
import { documentsIn } from '../documents.ts';
import { options, serveUntilDismissed } from './program.ts';
import { site } from './site.ts';

const { directory, durability, runtime } = options;
const db = await open('bench', { storage: files(directory), durability, cache: runtime === 'node' });
const where = { port: 0, hostname: '127.0.0.1', silent: true, gracefulShutdown: false };
const server = serve({ fetch: site(createHandler(db, { collections: [await documentsIn(db)] })), ...where });
await server.ready();
await serveUntilDismissed({ url: server.url ?? '', versions: `Node ${process.versions.node}` }, async () => {
  await server.close(true);
  await db.close();
});
