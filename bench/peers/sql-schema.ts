/**
 * The table, the statements and the settings of the two SQLite peers.
 *
 * Invariant: both have the same ones, so only the build and the way to the disk differ.
 *
 * Levels (sqlite.org/pragma.html#pragma_synchronous, sqlite.org/wal.html): with a write-ahead log, `synchronous=NORMAL`
 * hands each commit to the operating system and flushes at checkpoints: it survives the death of the process, and power
 * loss leaves a prefix of history. That is `relaxed`. `FULL` flushes the log at each commit: `strict`. A log without
 * shared memory needs `locking_mode=EXCLUSIVE` (sqlite.org/wal.html#noshm).
 */

import type { Engine, Session, SessionOptions } from '../core/engine.ts';
import { GROUP } from './indexeddb.ts';
import { engineOf, inWorker } from './library.ts';
import { folderUse, removeEntry } from './opfs.ts';
import { openRemote } from './remote.ts';

/** Varve's own default. SQLite's default is less: 2 MB, 16 MB in its wasm build. */
const CACHE_BYTES = 32 * 2 ** 20;
/** Rows up to a twentieth of a page are in the tree of the key; longer ones make it deep (sqlite.org/withoutrowid.html). */
const INLINE_BYTES_MAX = 200;

export function setUp({ durability, valueBytes, memoryBytes = CACHE_BYTES }: SessionOptions): string {
  const inline = valueBytes < INLINE_BYTES_MAX ? ' WITHOUT ROWID' : '';
  return `
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = ${durability === 'strict' ? 'FULL' : 'NORMAL'};
    PRAGMA cache_size = -${Math.floor(memoryBytes / 1024)};
    CREATE TABLE IF NOT EXISTS entries (k TEXT NOT NULL PRIMARY KEY, v BLOB NOT NULL)${inline};
  `;
}

/** Throws if the connection has another journal: a build or a VFS may have no write-ahead log. */
export function expectWal(peer: string, mode: unknown): void {
  if (mode !== 'wal') throw new Error(`${peer} has no write-ahead log here, but the journal mode "${mode}".`);
}

export const JOURNAL = 'PRAGMA journal_mode';

/** The counterpart of a compaction: rows are packed in key order, and the log is empty. */
export const TIDY = 'VACUUM; PRAGMA wal_checkpoint(TRUNCATE);';
export const CHECKPOINT = 'PRAGMA wal_checkpoint(TRUNCATE);';

export const SQL = {
  get: 'SELECT v FROM entries WHERE k = ?',
  set: 'INSERT INTO entries (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v',
  delete: 'DELETE FROM entries WHERE k = ?',
  deleteRange: 'DELETE FROM entries WHERE k >= ? AND k < ?',
  from: 'SELECT k, v FROM entries WHERE k >= ? ORDER BY k LIMIT ?',
  first: 'SELECT k, v FROM entries ORDER BY k LIMIT ?',
  begin: 'BEGIN',
  commit: 'COMMIT',
} as const;

export type StatementName = keyof typeof SQL;

type Texts = Pick<Engine, 'name' | 'url' | 'recommended' | 'groupsInFlight'> & { readonly build: string };

/**
 * A build as an engine and as its grouped twin. A store is a folder below bench-NAME. `open` must run in a dedicated worker;
 * `release` closes the files that the thread keeps open for a store.
 */
export function sqliteEngines(
  { build, groupsInFlight, ...texts }: Texts,
  open: (store: string, options: SessionOptions, group: number) => Promise<Session>,
  release: (store: string) => Promise<void> = async () => {},
): [Engine, Engine] {
  const { name } = texts;
  const folder = `bench-${name}`;
  const single = engineOf(
    {
      ...texts,
      about: `${build}, one transaction per call. From the page: a thin worker of the bench; in flight: 100 calls in one message and one transaction.`,
      open: (store, options) => (inWorker() ? open(store, options, 1) : openRemote(name, store, options)),
      disk: (store) => folderUse(folder, store),
      remove: async (store) => {
        await release(store);
        await removeEntry(folder, store);
      },
    },
    'tuple',
  );
  const grouped: Engine = {
    ...single,
    name: `${name}-grouped`,
    about: `The same with ${GROUP} point calls in one transaction: the counterpart of a grouped set.`,
    accesses: ['worker'],
    // A set of a group returns before its flush: not strict.
    durabilities: ['relaxed'],
    grouped: GROUP,
    groupsInFlight,
    only: 'point writes',
    open: (store, options) => open(store, options, GROUP),
  };
  return [single, grouped];
}
