/**
 * Where the model fuzz carries histories out in Node: files, IndexedDB on its stand-in, and files through the synchronous API.
 *
 * Invariant: time is the real one and what was let pass; whatever a place put up is gone after `end`.
 */

import 'fake-indexeddb/auto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IDBFactory } from 'fake-indexeddb';
import { vi } from 'vitest';
import { files } from '../../../js/src/fs.ts';
import { deleteStore, open } from '../../../js/src/index.ts';
import * as sync from '../../../js/src/sync.ts';
import type { OpenSpec } from '../../support/api/history.ts';
import type { Place } from '../../support/api/run.ts';
import { tools, wasm } from './engine.ts';
import { FakeLocks } from './fake-opfs.ts';

/** A place that is put up for one test. */
export interface NodePlace extends Place {
  end(): void;
}

const { now } = Date;

/** A clock that can be let run ahead. */
function clock() {
  let ahead = 0;
  vi.spyOn(Date, 'now').mockImplementation(() => now.call(Date) + ahead);
  const advance = (ms: number): void => {
    ahead += ms;
  };
  return { advance, tools };
}

function options({ memory, durability, cache }: OpenSpec) {
  return { wasm, memory, durability, ...(cache ? { cache: {} } : {}) };
}

/** Stores in files, in a temporary folder. */
export function filePlace(): NodePlace {
  const folder = mkdtempSync(join(tmpdir(), 'varve-fuzz-'));
  const storage = files(folder);
  return {
    ...clock(),
    open: (name, spec) => open(name, { storage, ...options(spec) }),
    remove: (name) => deleteStore(name, { storage }),
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The same through `varve/sync`. */
export function syncPlace(): NodePlace {
  const folder = mkdtempSync(join(tmpdir(), 'varve-fuzz-'));
  const storage = files(folder);
  return {
    ...clock(),
    open: (name, { memory, durability }) => sync.open(name, { storage, wasm, memory, durability }),
    remove: (name) => sync.deleteStore(name, { storage }),
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Stores in IndexedDB, whose device commits later. */
export function indexedDbPlace(): NodePlace {
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
  return {
    ...clock(),
    open: (name, spec) => open(name, { storage: 'indexeddb', ...options(spec) }),
    remove: (name) => deleteStore(name),
    end: () => undefined,
  };
}
