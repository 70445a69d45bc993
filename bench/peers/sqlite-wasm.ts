/**
 * The official SQLite build with its VFS opfs-sahpool, which its documentation calls the fastest of its ways to OPFS.
 *
 * Invariant: each store has its own pool and folder. The library is loaded once in each thread, as in an application.
 */

import type { SAHPoolUtil, Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import type { SessionOptions } from '../core/engine.ts';
import { assetUrl } from './library.ts';
import { expectWal, JOURNAL, setUp, sqliteEngines } from './sql-schema.ts';
import type { SqlSession } from './sql-session.ts';
import { sqliteWasmSession } from './sqlite-wasm-session.ts';

const NAME = 'sqlite-wasm';

let library: Promise<Sqlite3Static> | undefined;
/** Pools of this thread. The pool of a closed store is paused, and can be resumed. */
const pools = new Map<string, SAHPoolUtil>();

async function load(): Promise<Sqlite3Static> {
  // The VFS `opfs` needs a worker file of its own, which is absent; the others are not used.
  const disable = { vfs: { opfs: true, 'opfs-vfs': true, 'opfs-wl': true, kvvfs: true } };
  Object.assign(globalThis, { sqlite3ApiConfig: { disable } });
  const { default: init } = await import('@sqlite.org/sqlite-wasm');
  // Its types omit the options of its Emscripten module.
  const start = init as (options: { locateFile: (file: string) => string }) => Promise<Sqlite3Static>;
  return start({ locateFile: (file) => assetUrl(NAME, file) });
}

async function poolOf(sqlite3: Sqlite3Static, name: string): Promise<SAHPoolUtil> {
  const known = pools.get(name);
  if (known !== undefined) return known.unpauseVfs();
  const pool = await sqlite3.installOpfsSAHPoolVfs({ name, directory: `/bench-${NAME}/${name}` });
  pools.set(name, pool);
  return pool;
}

/** Opens a store in the calling thread, which must be a dedicated worker. */
export async function openSqliteWasm(name: string, options: SessionOptions, group = 1): Promise<SqlSession> {
  library ??= load();
  const sqlite3 = await library;
  const pool = await poolOf(sqlite3, name);
  const db = new pool.OpfsSAHPoolDb('/entries.db');
  db.exec(setUp(options));
  expectWal(NAME, db.selectValue(JOURNAL));
  return sqliteWasmSession(sqlite3, db, group, () => pool.pauseVfs());
}

async function release(name: string): Promise<void> {
  const pool = pools.get(name);
  if (!pools.delete(name)) return;
  await pool?.unpauseVfs();
  await pool?.removeVfs();
}

export const [sqliteWasm, sqliteWasmGrouped] = sqliteEngines(
  {
    name: NAME,
    url: 'https://sqlite.org/wasm/',
    build: 'The official SQLite build on opfs-sahpool: prepared statements through its C API',
    recommended:
      'The VFS opfs-sahpool for the highest speed (sqlite.org/wasm/doc/trunk/persistence.md#vfs-opfs-sahpool), statements prepared once, and a write-ahead log with synchronous=NORMAL for most applications (sqlite.org/pragma.html#pragma_synchronous).',
  },
  openSqliteWasm,
  release,
);
