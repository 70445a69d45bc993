/**
 * SQLite through better-sqlite3 where that is installed (`npm install --no-save better-sqlite3`: it builds or downloads a binary), else
 * through libsql, a fork of SQLite with the same API whose binaries come with its package.
 *
 * As its documentation recommends: WAL; `synchronous` NORMAL for writes that survive the process, FULL for flushed ones;
 * prepared statements; one table WITHOUT ROWID, whose text keys sort by their bytes, as Varve's do.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type Libsql from 'libsql';
import { versionOf } from '../../packages.ts';
import type { FileEngine, FileStore, Level, Pair } from '../engine.ts';

/** libsql 0.5 keeps some two files open of each database that was closed, and a process may have as few as 1024. */
const LIBSQL_OPENS_MAX = 200;

type Database = Libsql.Database;
type Constructor = new (path: string) => Database;

/** SQLite over a file. */
export async function sqlite(): Promise<FileEngine> {
  const { name, Database } = await driver();
  return {
    name: 'sqlite',
    version: `SQLite ${sqliteVersion(Database)} by ${name} ${versionOf(name)}`,
    writes: { relaxed: 'WAL, synchronous NORMAL', strict: 'WAL, synchronous FULL' },
    ...(name === 'libsql' && { opensMax: LIBSQL_OPENS_MAX }),
    open: async (directory, level) => {
      mkdirSync(directory, { recursive: true });
      return storeOf(new Database(join(directory, 'bench.db')), level);
    },
  };
}

/** The driver, by names that a bundler does not follow: one of them need not be there. */
async function driver(): Promise<{ name: string; Database: Constructor }> {
  for (const name of ['better-sqlite3', 'libsql']) {
    try {
      const { default: Database } = (await import(/* @vite-ignore */ name)) as { default: Constructor };
      new Database(':memory:').close();
      return { name, Database };
    } catch (error) {
      if (name === 'libsql') throw new Error(`SQLite is not to be had: run npm ci. ${error}`);
    }
  }
  throw new Error('SQLite is not to be had: run npm ci.');
}

function sqliteVersion(Database: Constructor): string {
  const db = new Database(':memory:');
  const [version] = db.prepare('SELECT sqlite_version()').raw().get() as [string];
  db.close();
  return version;
}

function storeOf(db: Database, level: Level): FileStore {
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${level === 'strict' ? 'FULL' : 'NORMAL'}`);
  db.exec('CREATE TABLE IF NOT EXISTS pairs (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID');
  const put = db.prepare('INSERT INTO pairs VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value');
  const get = db.prepare('SELECT value FROM pairs WHERE key = ?').raw();
  const remove = db.prepare('DELETE FROM pairs WHERE key = ?');
  const range = db.prepare('SELECT key, value FROM pairs WHERE key >= ? ORDER BY key LIMIT ?').raw();
  const removeRange = db.prepare('DELETE FROM pairs WHERE key >= ? AND key < ?');
  const all = db.prepare('SELECT key, value FROM pairs ORDER BY key').raw();
  const batch = db.transaction((pairs: readonly Pair[]) => {
    for (const [key, value] of pairs) put.run(key, value);
  });
  return {
    set: (key, value) => void put.run(key, value),
    get: (key) => (get.get(key) as [Uint8Array] | undefined)?.[0],
    delete: (key) => void remove.run(key),
    batch: (pairs) => void batch(pairs),
    range: (gte, limit) => range.all(gte, limit) as Pair[],
    deleteRange: (gte, lt) => void removeRange.run(gte, lt),
    all: () => all.iterate() as Iterable<Pair>,
    settle: async () => void db.pragma('wal_checkpoint(TRUNCATE)'),
    close: async () => void db.close(),
  };
}
