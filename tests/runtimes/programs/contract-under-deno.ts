// The contract of storages as a user runs it: under `deno test`, whose sanitizers check that nothing is left open or running.

import { mkdtempSync, rmSync } from 'node:fs';
import { files } from 'varve/fs';
import { type DefineTest, storageContract } from 'varve/testing';

declare const Deno: { test: DefineTest };

let folder = '';
storageContract({
  test: Deno.test,
  create: () => {
    folder = mkdtempSync('./deno-');
    return files(folder, { maxFiles: 100 });
  },
  end: () => rmSync(folder, { recursive: true }),
});
