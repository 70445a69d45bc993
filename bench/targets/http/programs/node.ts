/** A store in files behind srvx, on Node: the form of docs/guide/http.md. */

import process from 'node:process';
import { serve } from 'srvx';
import { open } from 'varve';
import { files } from 'varve/fs';
import { createHandler } from 'varve/http';
import { site } from './site.ts';
import { dismissed, say, told } from './told.ts';

const { directory, durability } = told();
const db = await open('bench', { storage: files(directory), durability });
const server = serve({
  fetch: site(createHandler(db)),
  port: 0,
  hostname: '127.0.0.1',
  silent: true,
  gracefulShutdown: false,
});
await server.ready();
say({ url: server.url ?? '', versions: `Node ${process.versions.node}, srvx` });
await dismissed();
await server.close(true);
await db.close();
process.exit();
