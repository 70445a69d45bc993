/**
 * The table and the statements of the two SQLite peers, and how its settings reach the levels of the bench.
 *
 * Invariant: both peers run the same statements on the same table with the same settings, so that what differs is the
 * build and the way to the disk.
 *
 * Levels (sqlite.org/pragma.html#pragma_synchronous, sqlite.org/wal.html): with a write-ahead log, `synchronous=NORMAL`
 * hands each commit to the operating system and flushes at checkpoints: it survives the death of the process, and power
 * loss leaves a prefix of history. That is `relaxed`. `FULL` flushes the log at each commit: `strict`. A log without
 * shared memory needs `locking_mode=EXCLUSIVE` (sqlite.org/wal.html#noshm).
 */

import type { SessionOptions } from '../core/engine.ts';

/** As much as Varve has for memtables and caches by itself. SQLite's own standard is less: 2 MB, 16 MB in its wasm build. */
const CACHE_BYTES = 32 * 2 ** 20;
/**
 * Rows below this many bytes lie in the tree of the key itself. Above, SQLite's documentation advises against it: rows
 * of more than a twentieth of a page make that tree deep (sqlite.org/withoutrowid.html).
 */
const INLINE_BYTES_MAX = 200;

/** What is run once on a fresh connection. */
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

/** Throws if the connection has another journal than it was told to: a build or a VFS may have no write-ahead log. */
export function expectWal(peer: string, mode: unknown): void {
  if (mode !== 'wal') throw new Error(`${peer} has no write-ahead log here, but the journal mode "${mode}".`);
}

/** Tells the journal that a connection has. */
export const JOURNAL = 'PRAGMA journal_mode';

/** The counterpart of a compaction: rows lie packed in key order, and nothing is left in the log. */
export const TIDY = 'VACUUM; PRAGMA wal_checkpoint(TRUNCATE);';
/** Everything in the file and nothing in the log. */
export const CHECKPOINT = 'PRAGMA wal_checkpoint(TRUNCATE);';

/** The statements that are prepared once and used again. */
export const SQL = {
  get: 'SELECT v FROM entries WHERE k = ?1',
  set: 'INSERT INTO entries (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v',
  delete: 'DELETE FROM entries WHERE k = ?1',
  deleteRange: 'DELETE FROM entries WHERE k >= ?1 AND k < ?2',
  from: 'SELECT k, v FROM entries WHERE k >= ?1 ORDER BY k LIMIT ?2',
  first: 'SELECT k, v FROM entries ORDER BY k LIMIT ?1',
  begin: 'BEGIN',
  commit: 'COMMIT',
} as const;

export type StatementName = keyof typeof SQL;

/** Point calls that the grouped engines join into one transaction: about what 64 KiB of Varve's log hold. */
export const GROUP = 500;
