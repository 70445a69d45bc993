/** More writes at once than a store has memory for: all of them are accepted, over the browser's files and over files in Node. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { files } from '../../js/src/fs.ts';
import { open } from '../../js/src/index.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { type FloodPlan, flood } from '../support/flood.ts';
import { spawnServer, tools, wasm } from './support/engine.ts';
import { stubOpfs } from './support/fake-opfs.ts';

const MIB = 2 ** 20;
const PLANS: readonly (readonly [string, FloodPlan])[] = [
  ['20,000 sets of 1 KB at once', { loops: undefined, writes: 20_000, bytes: 1024 }],
  ['16 loops that await 50 sets of 64 KB each', { loops: 16, writes: 800, bytes: 65_536 }],
];

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'varve-flood-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  vi.unstubAllGlobals();
});

/** A store in each of the places, with this much memory: in OPFS with a compactor beside the engine, in files with jobs in slices. */
const PLACES = {
  opfs(memoryBytes: number): Promise<Store<Key, unknown>> {
    stubOpfs();
    return openStore<Key, unknown>('flood', { wasm, storage: 'opfs', memoryBytes }, spawnServer);
  },
  files: (memoryBytes: number): Promise<Store<Key, unknown>> =>
    open('flood', { wasm, storage: files(folder), memoryBytes }),
};

describe.each(['opfs', 'files'] as const)('in %s', (place) => {
  describe.each([1, 8])('with %i MiB of memory', (mib) => {
    test.each(PLANS)('%s are taken and read back', { timeout: 300_000 }, async (_, plan) => {
      const db = await PLACES[place](mib * MIB);
      await flood(db, plan);
      expect((await db.check({ tools })).problems).toEqual([]);
      await db.close();
    });
  });
});
