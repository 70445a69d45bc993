// Deno KV in the programs that run in Deno: a database in a file of the program's directory.

import { join } from 'node:path';
import type { Kv } from 'varve/deno-kv';

/** An open database. */
export interface OpenKv extends Kv {
  close(): void;
}

declare const Deno: { openKv(path: string): Promise<OpenKv> };

/** Opens the database of a directory, and creates it where there is none. */
export function openKv(directory: string, name = 'kv.db'): Promise<OpenKv> {
  return Deno.openKv(join(directory, name));
}
