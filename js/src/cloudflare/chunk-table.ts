/**
 * Slots as rows of one SQL table.
 *
 *     id = slot * 2^22 + chunk * 2        base: bytes of the chunk from its start, as far as they were written
 *     id + 1                              patch: bytes that replace those from `start` on, if it has the base's version
 *     below 0                             of a later format: this code refuses the store
 *
 * A small write into a large chunk writes the patch, not the base: both count as one written row, but the patch is short. When
 * the patch is merged into the base, the base gets a higher version, so the row of the patch need not be deleted (which would
 * be a second row).
 *
 * Invariant: no index besides the primary key, which is the row's own number: a written row is billed once. A row stays far
 * below the platform's limit of 2 MB.
 */

import { VarveError } from '../errors.ts';
import { escapeName, unescapeName } from '../storage/names.ts';
import type { SqlStorage } from './platform.ts';

/**
 * Bytes of a chunk. Not more, because a read of a few kilobytes walks over all pages of the row. Not less, because each row that
 * a flush or a compaction writes is billed. Measured in docs/benchmarks.md.
 */
export const CHUNK_BYTES = 128 * 1024;
/** Twice the chunks that a slot may have: 2^21, which is 256 GiB. */
const IDS_PER_SLOT = 2 ** 22;
/** The name of a store's table is this prefix followed by the name of the store, escaped because SQLite ignores the case of letters. */
const TABLE_PREFIX = 'varve:';

/** The stored part of a chunk. */
export interface StoredChunk {
  readonly slot: number;
  readonly chunk: number;
  readonly version: number;
  /** Bytes in its base. */
  readonly base: number;
  /** There is a row with a patch, of this version or an older one. */
  readonly hasPatch: boolean;
  /** The start and end of a patch of this version; both 0 if there is none. */
  readonly patchStart: number;
  readonly patchEnd: number;
}

/** The table of one store. */
export class ChunkTable {
  /** Rows written through this table since it was opened. The platform bills these. */
  rowsWritten = 0;
  readonly #sql: SqlStorage;
  readonly #put: string;
  readonly #read: string;
  readonly #remove: string;
  readonly #touch: string;
  readonly #list: string;

  /** Makes the table if it does not exist. */
  constructor(sql: SqlStorage, store: string) {
    const table = quoted(store);
    this.#sql = sql;
    this.#put = `INSERT OR REPLACE INTO ${table} (id, version, start, bytes) VALUES (?, ?, ?, ?)`;
    this.#read = `SELECT substr(bytes, ?, ?) AS bytes FROM ${table} WHERE id = ?`;
    this.#remove = `DELETE FROM ${table} WHERE id >= ? AND id < ?`;
    this.#touch = `UPDATE ${table} SET version = version WHERE id = -1`;
    this.#list = `SELECT id, version, start, length(bytes) AS length FROM ${table} ORDER BY id`;
    this.#write(
      `CREATE TABLE IF NOT EXISTS ${table} (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, start INTEGER NOT NULL, bytes BLOB NOT NULL)`,
    );
  }

  /** Everything that is stored, slot by slot. Throws `VARVE_VERSION` for a row of a later format. */
  list(): StoredChunk[] {
    const found: { -readonly [K in keyof StoredChunk]: StoredChunk[K] }[] = [];
    for (const row of this.#sql.exec(this.#list)) {
      const { id, version, start, length } = row as unknown as Row;
      if (id < 0) throw new VarveError('VARVE_VERSION', 'A newer version of varve wrote this store.');
      const slot = Math.floor(id / IDS_PER_SLOT);
      const chunk = Math.floor((id % IDS_PER_SLOT) / 2);
      const last = found.at(-1);
      if (id % 2 === 0) {
        found.push({ slot, chunk, version, base: length, hasPatch: false, patchStart: 0, patchEnd: 0 });
      } else if (last?.slot === slot && last.chunk === chunk) {
        last.hasPatch = true;
        if (version === last.version) {
          last.patchStart = start;
          last.patchEnd = start + length;
        }
      }
    }
    return found;
  }

  /** Bytes of a base, or of a patch, from `from` on; fewer than `length` if it ends earlier. */
  read(slot: number, chunk: number, kind: 'base' | 'patch', from: number, length: number): Uint8Array {
    const [row] = this.#sql.exec(this.#read, from + 1, length, idOf(slot, chunk, kind)).toArray();
    const bytes = row?.['bytes'];
    return bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : new Uint8Array(0);
  }

  /** Writes a base or a patch: one row. */
  put(
    slot: number,
    chunk: number,
    kind: 'base' | 'patch',
    row: { version: number; start: number; bytes: Uint8Array },
  ): void {
    this.#write(this.#put, idOf(slot, chunk, kind), row.version, row.start, row.bytes);
  }

  /** Deletes the chunks of a slot from `chunk` on. */
  remove(slot: number, chunk: number): void {
    this.#write(this.#remove, idOf(slot, chunk, 'base'), idOf(slot + 1, 0, 'base'));
  }

  /**
   * A statement that writes nothing and costs no row. For the platform it is a write: from here on it holds back the output of the
   * turn until all writes of the turn are durable.
   */
  touch(): void {
    this.#write(this.#touch);
  }

  #write(query: string, ...bindings: unknown[]): void {
    this.rowsWritten += this.#sql.exec(query, ...bindings).rowsWritten;
  }
}

interface Row {
  readonly id: number;
  readonly version: number;
  readonly start: number;
  readonly length: number;
}

/** Names of the stores of an object. */
export function tablesOf(sql: SqlStorage): string[] {
  const query = `SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, ${TABLE_PREFIX.length}) = ?`;
  return sql
    .exec(query, TABLE_PREFIX)
    .toArray()
    .flatMap((row) => unescapeName(String(row['name']).slice(TABLE_PREFIX.length)) ?? []);
}

/** Drops the table of a store. */
export function dropTable(sql: SqlStorage, store: string): void {
  sql.exec(`DROP TABLE ${quoted(store)}`);
}

/** `ctx.storage.sql`, which only a class with SQLite-backed storage has. */
export function sqlOf(storage: { readonly sql: SqlStorage }): SqlStorage {
  try {
    if (storage.sql !== undefined) return storage.sql;
  } catch {
    // The getter throws if the storage is of the older kind.
  }
  throw new VarveError(
    'VARVE_UNSUPPORTED',
    'This Durable Object has no SQL storage: name its class in new_sqlite_classes of the migrations.',
  );
}

function idOf(slot: number, chunk: number, kind: 'base' | 'patch'): number {
  return slot * IDS_PER_SLOT + chunk * 2 + (kind === 'patch' ? 1 : 0);
}

function quoted(store: string): string {
  return `"${TABLE_PREFIX}${escapeName(store)}"`;
}
