/** A store in files, or in Deno KV, behind `Deno.serve`: the form of docs/guide/http.md. */

import { join } from 'node:path';
import { open } from 'varve';
import { denoKv, type Kv } from 'varve/deno-kv';
import { files } from 'varve/fs';
import { createHandler, type Handler } from 'varve/http';
import { documentsIn } from '../documents.ts';
import { options, serveUntilDismissed } from './program.ts';
import { site } from './site.ts';

declare const Deno: {
  readonly version: { readonly deno: string };
  openKv(path: string): Promise<Kv>;
  serve(where: { port: number; hostname: string; onListen(): void }, handler: Handler): { addr: { port: number } };
};

const { directory, durability, runtime } = options;
const storage = runtime === 'deno-kv' ? denoKv(await Deno.openKv(join(directory, 'kv.db'))) : files(directory);
const db = await open('bench', { storage, durability });
const hostname = '127.0.0.1';
const { addr } = Deno.serve(
  { port: 0, hostname, onListen: () => undefined },
  site(createHandler(db, { collections: [await documentsIn(db)] })),
);
const address = { url: `http://${hostname}:${addr.port}`, versions: `Deno ${Deno.version.deno}` };
await serveUntilDismissed(address, () => db.close());
