// The contract of storages as a user runs it: under `bun test`.

import { test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { files } from 'varve/fs';
import { storageContract } from 'varve/testing';

let folder = '';
storageContract({
  test,
  create: () => {
    folder = mkdtempSync('./bun-');
    return files(folder, { maxFiles: 100 });
  },
  end: () => rmSync(folder, { recursive: true }),
});
