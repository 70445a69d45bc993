// Runs the contract of storages on Deno KV: a database in a file for each test, and a second connection to it.

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { denoKv } from 'varve/deno-kv';
import { type DefineTest, storageContract } from 'varve/testing';
import { type OpenKv, openKv } from '../support/kv.ts';
import { parameters, say } from '../support/program.ts';

const { directory } = parameters();
const clauses: Parameters<DefineTest>[] = [];
let folder = '';
let open: OpenKv[] = [];
async function connect() {
  const kv = await openKv(folder);
  open.push(kv);
  return denoKv(kv, { lease: 60_000 });
}
storageContract({
  test: (name, run) => clauses.push([name, run]),
  deferred: true,
  create: () => {
    folder = mkdtempSync(join(directory, 'contract-'));
    return connect();
  },
  end: () => {
    for (const kv of open) kv.close();
    open = [];
    rmSync(folder, { recursive: true });
  },
  other: connect,
});
const failures: string[] = [];
for (const [name, run] of clauses) await run().catch((error: unknown) => failures.push(`${name}: ${error}`));
say(JSON.stringify({ clauses: clauses.length, failures }));
