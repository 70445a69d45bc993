// The contract of storages as a user runs it: under `node --test`.

import { mkdtempSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { files } from 'varve/fs';
import { storageContract } from 'varve/testing';

let folder = '';
storageContract({
  test,
  create: () => {
    folder = mkdtempSync('./node-');
    return files(folder, { maxFiles: 100 });
  },
  end: () => rmSync(folder, { recursive: true }),
});
