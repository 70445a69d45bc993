/** A store in files behind `Deno.serve`: the form of docs/guide/http.md. */

import { open } from 'varve';
import { files } from 'varve/fs';
import { createHandler, type Handler } from 'varve/http';
import { options, serveUntilDismissed } from './program.ts';
import { site } from './site.ts';

declare const Deno: {
  readonly version: { readonly deno: string };
  serve(where: { port: number; hostname: string; onListen(): void }, handler: Handler): { addr: { port: number } };
};

const db = await open('bench', { storage: files(options.directory), durability: options.durability });
const hostname = '127.0.0.1';
const { addr } = Deno.serve({ port: 0, hostname, onListen: () => undefined }, site(createHandler(db)));
const address = { url: `http://${hostname}:${addr.port}`, versions: `Deno ${Deno.version.deno}` };
await serveUntilDismissed(address, () => db.close());
