/** A store in files behind `Deno.serve`: the form of docs/guide/http.md. */

import process from 'node:process';
import { open } from 'varve';
import { files } from 'varve/fs';
import { createHandler, type Handler } from 'varve/http';
import { site } from './site.ts';
import { dismissed, say, told } from './told.ts';

interface ServeOptions {
  readonly port: number;
  readonly hostname: string;
  onListen(at: { readonly port: number }): void;
}

declare const Deno: {
  readonly version: { readonly deno: string };
  serve(options: ServeOptions, handler: Handler): { shutdown(): Promise<void> };
};

const { directory, durability } = told();
const db = await open('bench', { storage: files(directory), durability });
const hostname = '127.0.0.1';
const onListen = ({ port }: { readonly port: number }): void => {
  say({ url: `http://${hostname}:${port}`, versions: `Deno ${Deno.version.deno}` });
};
Deno.serve({ port: 0, hostname, onListen }, site(createHandler(db)));
await dismissed();
await db.close();
process.exit();
