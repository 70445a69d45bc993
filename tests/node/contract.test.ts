/** The contract of storages: every storage of this project that Node can run fulfils it. */

import 'fake-indexeddb/auto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { ObjectStorageAdapter } from '../../js/src/cloudflare/adapter.ts';
import type { SqlDevice } from '../../js/src/cloudflare/sql-device.ts';
import { files } from '../../js/src/fs.ts';
import { DenoKvStorage } from '../../js/src/storage/denokv/adapter.ts';
import { FileStorage } from '../../js/src/storage/fs/files.ts';
import { openIndexedDb } from '../../js/src/storage/indexeddb/chunk-store.ts';
import { indexedDbStorage } from '../../js/src/storage/indexeddb/storage.ts';
import { opfsStorage } from '../../js/src/storage/opfs-storage.ts';
import { LossyStorage, storageContract } from '../../js/src/testing.ts';
import { randomFrom, tools, wasm } from './support/engine.ts';
import { FakeKv, FakeKvState } from './support/fake-kv.ts';
import { FakeLocks, type FakeOpfs, stubOpfs } from './support/fake-opfs.ts';
import { FakeSql } from './support/fake-sql.ts';
import { LossyDatabases } from './support/lossy-databases.ts';
import { LossyFiles } from './support/lossy-files.ts';

const TIMEOUT_MS = 30_000;
const define = (name: string, run: () => Promise<void>): void => test(name, run, TIMEOUT_MS);

const directories: string[] = [];

function newDirectory(): string {
  const directory = fs.mkdtempSync(join(tmpdir(), 'varve-contract-'));
  directories.push(directory);
  return directory;
}

afterEach(() => {
  for (const directory of directories.splice(0)) fs.rmSync(directory, { recursive: true, force: true });
});

describe('memory that loses power', () => {
  storageContract({
    test: define,
    create: () => new LossyStorage(),
    losePower: (storage) => storage.losePower(),
    setRoom: (storage, bytes) => storage.setRoom(bytes),
    wasm,
    tools,
  });
});

describe('files', () => {
  let directory: string;
  storageContract({
    test: define,
    create: () => {
      directory = newDirectory();
      return files(directory);
    },
    other: () => files(directory),
    farBytes: 2 ** 32,
    wasm,
    tools,
  });
});

describe('files that lose power', () => {
  let calls: LossyFiles;
  storageContract({
    test: define,
    create: () => {
      calls = new LossyFiles();
      return new FileStorage(newDirectory(), { calls, slotsMax: 40 });
    },
    losePower: () => calls.losePower(),
    setRoom: (_, bytes) => calls.setRoom(bytes),
    wasm,
    tools,
  });
});

describe('rows of a Durable Object', () => {
  let sql: FakeSql;
  /** How many bytes the storage may take, while stores are open. */
  let room: { maxBytes: number };
  let device: SqlDevice | undefined;
  class Rows extends ObjectStorageAdapter {
    override openNow(name: string): SqlDevice {
      device = super.openNow(name);
      return device;
    }
  }
  const rows = (): Rows => new Rows({ storage: { sql }, abort: () => undefined }, room);
  storageContract({
    test: define,
    create: () => {
      sql = new FakeSql();
      room = { maxBytes: 1e11 };
      return rows();
    },
    other: rows,
    losePower: async (storage) => {
      // A turn is kept or lost as a whole, and nothing outside knows of a lost turn: sql-device.test.ts.
      await sql.committed();
      storage.abort();
      sql.crash();
    },
    setRoom: async (_, bytes) => {
      room.maxBytes = bytes === undefined ? 1e11 : room.maxBytes - ((await device?.freeBytes()) ?? 0) + bytes;
    },
    farBytes: 2 ** 32,
    wasm,
    tools,
  });
});

describe('a fake of Deno KV', () => {
  let connections: FakeKv[];
  const connect = (state: FakeKvState): DenoKvStorage => {
    const kv = new FakeKv(state);
    connections.push(kv);
    return new DenoKvStorage(kv, { prefix: ['varve'], leaseMs: 30_000 });
  };
  class Shared extends DenoKvStorage {
    readonly state = new FakeKvState();
    #now = connect(this.state);

    constructor() {
      super(new FakeKv(), { prefix: [], leaseMs: 1000 });
    }

    override open = (...given: Parameters<DenoKvStorage['open']>) => this.#now.open(...given);
    override list = () => this.#now.list();
    override delete = (...given: Parameters<DenoKvStorage['delete']>) => this.#now.delete(...given);

    /** All holders are dead, for longer than their lease. */
    losePower(): void {
      for (const kv of connections.splice(0)) kv.kill(true);
      this.state.expire();
      this.#now = connect(this.state);
    }
  }
  beforeEach(() => {
    connections = [];
  });
  storageContract({
    test: define,
    deferred: true,
    create: () => new Shared(),
    other: ({ state }) => connect(state),
    losePower: (storage) => storage.losePower(),
    wasm,
    tools,
  });
});

describe('a fake of OPFS', () => {
  let opfs: FakeOpfs;
  beforeEach(() => {
    opfs = stubOpfs();
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });
  storageContract({
    test: define,
    create: () => opfsStorage,
    losePower: () => {
      opfs.losePower();
      stubOpfs(opfs);
    },
    setRoom: (_, bytes) => {
      opfs.quota = bytes === undefined ? Number.POSITIVE_INFINITY : opfs.used() + bytes;
    },
    wasm,
    tools,
  });
});

describe('a fake of IndexedDB', () => {
  let databases: LossyDatabases;
  let random: (below: number) => number;
  beforeEach(() => {
    databases = new LossyDatabases();
    random = randomFrom(1);
    vi.stubGlobal('indexedDB', databases.factory);
    vi.stubGlobal('navigator', { locks: new FakeLocks() });
  });
  afterEach(() => {
    databases.end();
    vi.unstubAllGlobals();
  });
  storageContract({
    test: define,
    deferred: true,
    create: () => indexedDbStorage(openIndexedDb),
    losePower: async () => {
      await databases.losePower(random);
      vi.stubGlobal('indexedDB', databases.factory);
      vi.stubGlobal('navigator', { locks: new FakeLocks() });
    },
    setRoom: (_, bytes) => {
      databases.room = bytes;
    },
    farBytes: 2 ** 32,
    wasm,
    tools,
  });
});
