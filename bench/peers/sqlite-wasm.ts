/**
 * The official SQLite build with its VFS opfs-sahpool, which its documentation calls the fastest of its ways to OPFS.
 *
 * Invariant: a store has a pool of its own, in a folder of its own. The library is loaded once in each thread, as an
 * application would; opening a store acquires its files, sets the connection up and prepares the statements.
 */

import type { SAHPoolUtil, Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import type { Engine, SessionOptions } from '../core/engine.ts';
import { assetUrl } from './assets.ts';
import { folderUse, removeFolder } from './opfs-folder.ts';
import { inWorker, openRemote } from './remote.ts';
import { expectWal, GROUP, JOURNAL, setUp } from './sqlite-schema.ts';
import { SqliteWasmSession } from './sqlite-wasm-session.ts';
import { versionOf } from './versions.ts';

const NAME = 'sqlite-wasm';
const FOLDER = 'bench-sqlite-wasm';

let library: Promise<Sqlite3Static> | undefined;
/** Pools of this thread: a pool that was installed is paused while its store is closed, and can be resumed. */
const pools = new Map<string, SAHPoolUtil>();

async function load(): Promise<Sqlite3Static> {
  // The VFS of that name wants a worker of its own, which is not there; and nothing here uses it.
  const disable = { vfs: { opfs: true, 'opfs-vfs': true, 'opfs-wl': true, kvvfs: true } };
  Object.assign(globalThis, { sqlite3ApiConfig: { disable } });
  const { default: init } = await import('@sqlite.org/sqlite-wasm');
  // Its types do not have the options of the module that it is made of.
  const start = init as (options: { locateFile: (file: string) => string }) => Promise<Sqlite3Static>;
  return start({ locateFile: (file) => assetUrl(NAME, file) });
}

async function poolOf(sqlite3: Sqlite3Static, name: string): Promise<SAHPoolUtil> {
  const known = pools.get(name);
  if (known !== undefined) return known.unpauseVfs();
  const pool = await sqlite3.installOpfsSAHPoolVfs({ name, directory: `/${FOLDER}/${name}` });
  pools.set(name, pool);
  return pool;
}

/** Opens a store in the calling thread, which must be a dedicated worker. */
export async function openSqliteWasm(
  name: string,
  options: SessionOptions,
  grouped = false,
): Promise<SqliteWasmSession> {
  library ??= load();
  const sqlite3 = await library;
  const pool = await poolOf(sqlite3, name);
  const db = new pool.OpfsSAHPoolDb('/entries.db');
  db.exec(setUp(options));
  expectWal(NAME, db.selectValue(JOURNAL));
  return new SqliteWasmSession(sqlite3, db, grouped, () => pool.pauseVfs());
}

async function remove(name: string): Promise<void> {
  const pool = pools.get(name);
  if (pool === undefined) return removeFolder(FOLDER, name);
  pools.delete(name);
  await pool.unpauseVfs();
  await pool.removeVfs();
}

const shared: Omit<Engine, 'name' | 'about' | 'open' | 'accesses'> = {
  version: versionOf(NAME),
  url: 'https://sqlite.org/wasm/',
  recommended:
    'The VFS opfs-sahpool for the highest speed (sqlite.org/wasm/doc/trunk/persistence.md#vfs-opfs-sahpool), statements prepared once, and a write-ahead log with synchronous=NORMAL for most applications (sqlite.org/pragma.html#pragma_synchronous).',
  role: 'peer',
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'transaction'],
  durabilities: ['relaxed', 'strict'],
  disk: (name) => folderUse(FOLDER, name),
  remove,
};

export const sqliteWasm: Engine = {
  ...shared,
  name: NAME,
  about:
    'The official SQLite build on opfs-sahpool: prepared statements through its C API, one transaction per call. From the page: a thin worker of the bench; in flight: 100 calls in one message and one transaction.',
  accesses: ['worker', 'page', 'inflight'],
  open: (name, options) => (inWorker() ? openSqliteWasm(name, options) : openRemote(NAME, name, options)),
};

export const sqliteWasmGrouped: Engine = {
  ...shared,
  name: `${NAME}-grouped`,
  about: `The same with ${GROUP} point calls in one transaction: the counterpart of a grouped set.`,
  accesses: ['worker'],
  // A set of a group returns before its flush: not strict.
  durabilities: ['relaxed'],
  grouped: GROUP,
  only: 'point writes',
  open: (name, options) => openSqliteWasm(name, options, true),
};
