/**
 * The engines of the comparison on Node: Varve, SQLite and LevelDB over files, and bare file calls. A store is a folder below
 * one directory.
 *
 * Invariant: a call has done its work at the store's durability when it returns, or when its promise resolves: `relaxed` writes
 * have been handed to the operating system, `strict` ones flushed.
 */

import * as fs from 'node:fs';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import type Libsql from 'libsql';
import { open } from 'varve';
import { files } from 'varve/fs';
import { open as openSyncStore } from 'varve/synchronous';
import type { DiskUse, Engine, Session, SessionOptions, SyncSession } from '../../core/engine.ts';
import type { Key } from '../../core/generator.ts';
import { levelSession } from '../../peers/level.ts';
import { appendSession } from '../../peers/opfs-append.ts';
import { SQL, type StatementName } from '../../peers/sql-schema.ts';
import { type Statements, sqlSession } from '../../peers/sql-session.ts';
import { varveSession } from '../../peers/varve-page.ts';
import { syncSession } from '../../peers/varve-sync.ts';
import { versionOf } from '../command.ts';

const RANGE_BYTES = 1 << 20;
const LAST = '\u{10ffff}';
/** libsql 0.5 keeps some two files open of each database that was closed, and a process may have as few as 1024. */
const LIBSQL_OPENS_MAX = 200;

const TABLE = 'CREATE TABLE IF NOT EXISTS entries (k TEXT NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID';

type Open = (folder: string, options: SessionOptions) => Promise<Session>;

type Traits = Partial<Engine> & Pick<Engine, 'name' | 'about' | 'role'>;

function engineOf(directory: string, traits: Traits, openIn: Open): Engine {
  return {
    accesses: ['worker'],
    abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open'],
    durabilities: ['relaxed', 'strict'],
    ...traits,
    open: (name, options) => openIn(join(directory, name), options),
    disk: async (name) => useOf(join(directory, name)),
    remove: async (name) => fs.rmSync(join(directory, name), { recursive: true, force: true }),
  };
}

function useOf(folder: string): DiskUse {
  const found = fs.existsSync(folder) ? fs.readdirSync(folder, { withFileTypes: true, recursive: true }) : [];
  const sizes = found
    .filter((entry) => entry.isFile())
    .map((entry) => fs.statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0);
  return { files: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

/** Varve, through `varve/synchronous` with `commit()` after each write, and through `varve` with each call awaited. */
export function varveEngines(directory: string): Engine[] {
  const version = versionOf('..');
  const traits = { role: 'varve', version, durabilities: ['memory', 'relaxed', 'strict'] } as const;
  const sync = { ...traits, name: 'varve-sync', about: 'varve/synchronous over varve/fs: commit() after each write.' };
  const awaited = { ...traits, name: 'varve', about: 'varve over varve/fs: each call awaited.' };
  return [
    engineOf(directory, sync, async (folder, { durability, memoryBytes, storage = files(folder) }) => {
      return syncSession(await openSyncStore<Key, Uint8Array>('bench', { storage, durability, memoryBytes }), true);
    }),
    engineOf(directory, awaited, async (folder, { durability, memoryBytes, storage = files(folder) }) => {
      return varveSession(await open<Key, Uint8Array>('bench', { storage, durability, memoryBytes, cache: false }));
    }),
  ];
}

/** The floor: the same bytes by one write call each, and fdatasync at `strict`; a get is one read call at a place that is known. */
export function bareFile(directory: string): Engine {
  const about =
    'Bare file calls: one write each (and fdatasync at strict); a get is one read where a Map says the value lies.';
  const traits = { name: 'bare-file', about, role: 'floor', abilities: ['set', 'get', 'delete', 'batch'] } as const;
  return engineOf(directory, traits, async (folder, { durability }) => {
    fs.mkdirSync(folder, { recursive: true });
    const file = fs.openSync(join(folder, 'bare'), 'w+');
    const whole = (bytes: ArrayBufferView): Uint8Array => bytes as Uint8Array;
    const handle = {
      read: (bytes: ArrayBufferView, { at = 0 } = {}) => fs.readSync(file, whole(bytes), 0, bytes.byteLength, at),
      write: (bytes: ArrayBufferView, { at = 0 } = {}) => fs.writeSync(file, whole(bytes), 0, bytes.byteLength, at),
      flush: () => fs.fdatasyncSync(file),
      close: () => fs.closeSync(file),
    };
    return appendSession(handle as Parameters<typeof appendSession>[0], durability === 'strict');
  });
}

/**
 * LevelDB by classic-level, as its README has it: values as Uint8Arrays, `getSync` for single reads, `nextv` with room enough
 * for a range, `sync: true` where a write must be flushed. Compression stays at its default (Snappy).
 */
function leveldb(directory: string): Engine {
  const traits = {
    name: 'leveldb',
    about: 'LevelDB: `sync: false`, at strict `sync: true`, each awaited; `getSync` and `nextv` for reads.',
    role: 'peer',
    version: `classic-level ${versionOf('classic-level')}`,
  } as const;
  return engineOf(directory, traits, async (folder, { durability }) => {
    const db = new ClassicLevel<string, Uint8Array>(folder, { keyEncoding: 'utf8', valueEncoding: 'view' });
    await db.open();
    return levelSession(
      db,
      { sync: durability === 'strict' },
      {
        get: async (key) => db.getSync(key as string),
        range: async (from, limit, sink) => {
          const bounds = from === undefined ? {} : { gte: from as string };
          const iterator = db.iterator({ ...bounds, limit, highWaterMarkBytes: RANGE_BYTES });
          try {
            for (const [key, value] of await iterator.nextv(limit)) sink.take(key, value);
          } finally {
            await iterator.close();
          }
        },
        settle: async (where) => {
          if (where === 'tables') await db.compactRange('', LAST);
          return true;
        },
      },
    );
  });
}

/**
 * SQLite through libsql, a fork with the API of better-sqlite3 whose binaries come with its package; it is loaded when it is
 * asked for, because not every platform has a binary.
 *
 * As its documentation recommends: WAL; `synchronous` NORMAL for writes that survive the process, FULL for flushed ones;
 * prepared statements; one table WITHOUT ROWID, whose text keys sort by their bytes, as Varve's do.
 */
async function sqlite(directory: string): Promise<Engine> {
  const { default: Database } = await import('libsql');
  const memory = new Database(':memory:');
  const [version] = memory.prepare('SELECT sqlite_version()').raw().get() as [string];
  memory.close();
  const traits = {
    name: 'sqlite',
    about: 'SQLite: WAL, `synchronous` NORMAL, at strict FULL; statements prepared, one table WITHOUT ROWID.',
    role: 'peer',
    version: `SQLite ${version} by libsql ${versionOf('libsql')}`,
    opensMax: LIBSQL_OPENS_MAX,
  } as const;
  return engineOf(directory, traits, async (folder, { durability }) => {
    fs.mkdirSync(folder, { recursive: true });
    return sqliteSession(new Database(join(folder, 'bench.db')), durability === 'strict');
  });
}

function sqliteSession(db: Libsql.Database, isStrict: boolean): SyncSession {
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${isStrict ? 'FULL' : 'NORMAL'}`);
  db.exec(TABLE);
  const prepare = (name: StatementName) => db.prepare(SQL[name]);
  const [set, remove, removeRange] = [prepare('set'), prepare('delete'), prepare('deleteRange')];
  const [begin, commit] = [prepare('begin'), prepare('commit')];
  const [get, first, next] = [prepare('get').raw(), prepare('first').raw(), prepare('from').raw()];
  const statements: Statements = {
    set: (key, value) => void set.run(key, value),
    get: (key) => (get.get(key) as [Uint8Array] | undefined)?.[0],
    delete: (key) => void remove.run(key),
    deleteRange: (from, to) => void removeRange.run(from, to),
    range: (from, limit, sink) => {
      const found = from === undefined ? first.all(limit) : next.all(from, limit);
      for (const [key, value] of found as [string, Uint8Array][]) sink.take(key, value);
    },
    begin: () => void begin.run(),
    commit: () => void commit.run(),
  };
  return sqlSession(statements, {
    settle: async () => {
      db.pragma('wal_checkpoint(TRUNCATE)');
      return true;
    },
    close: async () => void db.close(),
  });
}

/** The peers by name; a promise rejects if the peer is unavailable. */
export const PEERS: Readonly<Record<string, (directory: string) => Engine | Promise<Engine>>> = { sqlite, leveldb };
