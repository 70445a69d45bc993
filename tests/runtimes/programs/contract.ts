// Runs the contract of storages on files, in the runtime that it is started in.

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { files } from 'varve/fs';
import { type DefineTest, storageContract } from 'varve/testing';
import { parameters, say } from '../support/program.ts';

const { directory } = parameters();
const clauses: Parameters<DefineTest>[] = [];
let folder = '';
storageContract({
  test: (name, run) => clauses.push([name, run]),
  create: () => {
    folder = mkdtempSync(join(directory, 'contract-'));
    return files(folder, { maxFiles: 200 });
  },
  end: () => rmSync(folder, { recursive: true }),
  other: () => files(folder),
  farBytes: 2 ** 32,
});
const failures: string[] = [];
for (const [name, run] of clauses) await run().catch((error: unknown) => failures.push(`${name}: ${error}`));
say(JSON.stringify({ clauses: clauses.length, failures }));
