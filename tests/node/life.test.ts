// Thousands of short sessions of one store, on stand-ins of the browser's storages. Each session opens the store, writes a little once,
// and ends, with or without closing. Every write is accepted, and nothing acknowledged is lost. Neither the cost of opening nor the files
// grow with the number of sessions. `VARVE_SESSIONS` sets how many sessions, `VARVE_SEED` which.

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Port } from '../../js/src/client/client.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { StorageKind } from '../../js/src/types.ts';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { type Census, checkBounded, Guestbook, summary, visitWrite } from '../support/visits.ts';
import { spawnServer, tools, wasm } from './support/engine.ts';
import { type FakeDirectory, FakeFileHandle, FakeHandle, FakeOpfs, stubOpfs } from './support/fake-opfs.ts';

const SESSIONS = numberFrom('VARVE_SESSIONS', 10_000);
/** Spare files, and the files that the entries of so many sessions take, with some tables besides. */
const BYTES_MAX = (2 << 20) + 500 * SESSIONS;
/** All entries are read once in this many sessions. */
const READ_EVERY = 500;
const seed = runSeed('js', 'life');

type Size = () => { readonly files: number; readonly bytes: number };

/** The internals of fake-indexeddb. */
interface Inside {
  readonly _databases: Map<string, { readonly rawObjectStores: Map<string, { readonly records: Rows }> }>;
}

interface Rows {
  values(): Iterable<{ readonly value: unknown }>;
}

let opfs: FakeOpfs;
let databases: IDBFactory;
/** Calls to the storage since the store was last opened. */
let calls: number;

beforeEach(() => {
  opfs = new FakeOpfs();
  vi.stubGlobal('FileSystemFileHandle', FakeFileHandle);
  databases = new IDBFactory();
  vi.stubGlobal('indexedDB', databases);
  calls = 0;
});

afterEach(() => {
  for (const restore of restores.splice(0)) restore();
  vi.unstubAllGlobals();
});

/** Functions that restore the counted methods. */
const restores: (() => void)[] = [];

/** Counts every call of some methods. A spy would also keep the arguments. */
function count(prototype: object, methods: readonly string[]): void {
  for (const method of methods) {
    const original = Reflect.get(prototype, method) as (...args: unknown[]) => unknown;
    Reflect.set(prototype, method, function (this: unknown, ...args: unknown[]) {
      calls++;
      return original.apply(this, args);
    });
    restores.push(() => Reflect.set(prototype, method, original));
  }
}

/** One tab with the store open. For locks, it is in a realm of its own. */
class Tab {
  readonly db: Store<string, string>;
  readonly #worker: Port;

  private constructor(db: Store<string, string>, worker: Port) {
    this.db = db;
    this.#worker = worker;
  }

  static async open(storage: StorageKind): Promise<Tab> {
    stubOpfs(opfs);
    let worker: Port | undefined;
    const spawn = (): Port => {
      worker = spawnServer();
      return worker;
    };
    const db = await openStore<string, string>('life', { wasm, storage, memoryBytes: 1 << 20 }, spawn);
    return new Tab(db, worker as Port);
  }

  /** Does what the browser does when the tab is closed, or its process dies. */
  kill(): void {
    this.#worker.terminate?.();
    opfs.killWorkers();
  }
}

/** Counts of the storage in which a store was just opened. */
async function census({ db }: Tab, size: Size): Promise<Census> {
  const opened = calls;
  const {
    log: { segments: walSegments },
    levels,
  } = await db.stats();
  const tables = levels.reduce((sum, level) => sum + level.tables, 0);
  return { records: db.recovery.records, segments: walSegments, tables, calls: opened, ...size() };
}

/** All entries. */
async function all(db: Store<string, string>): Promise<[string, string][]> {
  const found: [string, string][] = [];
  for await (const entry of db.entries()) found.push(entry);
  return found;
}

/** Runs this many sessions; returns the census of each. */
async function live(storage: StorageKind, sessions: number, size: Size): Promise<Census[]> {
  const random = randomFrom(seed);
  const guestbook = new Guestbook(seed);
  const censuses: Census[] = [];
  for (let visit = 0; visit < sessions; visit++) {
    calls = 0;
    const tab = await Tab.open(storage);
    const { db } = tab;
    censuses.push(await census(tab, size));
    const asked = guestbook.asked(visit);
    const values = await db.getMany(asked);
    guestbook.check(asked.map((key, i) => [key, values[i]]));
    if (visit % READ_EVERY === 0) guestbook.checkAll(await all(db));
    const { key, value } = visitWrite(seed, visit);
    const ending = random(10);
    const durability = ending === 0 ? 'strict' : 'relaxed';
    const written = value === undefined ? db.delete(key, { durability }) : db.set(key, value, { durability });
    // A tenth of the sessions end before their write is acknowledged, which may be before anything is written.
    if (ending === 1) written.catch(() => undefined);
    else await written;
    guestbook.ended(visit, ending !== 1);
    if (ending < 5) tab.kill();
    else await db.close();
    if (ending === 0) opfs.losePower();
  }
  const { db } = await Tab.open(storage);
  guestbook.checkAll(await all(db));
  expect(guestbook.size).toBeGreaterThan(sessions / 4);
  expect((await db.check({ tools })).problems).toEqual([]);
  await db.close();
  return censuses;
}

/** Files below a directory. */
function filesIn(directory: FakeDirectory): number {
  return [...directory.directories.values()].reduce((sum, child) => sum + filesIn(child), directory.files.size);
}

/** Rows of all databases. */
function rowsIn(factory: IDBFactory): { files: number; bytes: number } {
  const { _databases } = factory as unknown as Inside;
  let [files, bytes] = [0, 0];
  for (const { rawObjectStores } of _databases.values()) {
    for (const { records } of rawObjectStores.values()) {
      for (const { value } of records.values()) {
        files++;
        bytes += ArrayBuffer.isView(value) ? value.byteLength : 0;
      }
    }
  }
  return { files, bytes };
}

const PLACES = {
  opfs: {
    sessions: Math.ceil(SESSIONS * 0.9),
    limits: { records: 64, segments: 20, tables: 32, files: 60, bytes: BYTES_MAX, calls: 400 },
    size: () => ({ files: filesIn(opfs.root), bytes: opfs.used() }),
    counted: [
      [FakeFileHandle.prototype, ['createSyncAccessHandle', 'getFile']],
      [FakeHandle.prototype, ['read', 'write', 'flush', 'truncate', 'getSize']],
    ],
  },
  indexeddb: {
    sessions: Math.floor(SESSIONS * 0.1),
    limits: { records: 64, segments: 20, tables: 32, files: 1000, bytes: BYTES_MAX, calls: 400 },
    size: () => rowsIn(databases),
    counted: [
      [IDBDatabase.prototype, ['transaction']],
      [IDBObjectStore.prototype, ['get', 'put', 'delete', 'getAll', 'getAllKeys', 'openCursor']],
    ],
  },
} as const;

test.for(['opfs', 'indexeddb'] as const)(
  'any number of short sessions in %s leaves all that was acknowledged, and little else',
  { timeout: 60_000 + 500 * SESSIONS },
  async (storage) => {
    const { sessions, limits, size, counted } = PLACES[storage];
    for (const [prototype, methods] of counted) count(prototype, methods);
    const censuses = await live(storage, sessions, size);
    console.log(`${sessions} sessions in ${storage}: ${summary(censuses)}`);
    checkBounded(censuses, limits);
  },
);
