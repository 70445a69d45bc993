/**
 * The SQL storage of a Durable Object, as far as a `ChunkTable` uses it, with the platform's transactions. Writes without a wait for I/O
 * between them are committed together, after the microtasks.
 *
 * Invariant: `crash` leaves the committed writes. As in SQLite, the case of the letters A to Z in a table's name is ignored. Unknown
 * statements are refused, so a new one needs its part here.
 */

import type { SqlCursor, SqlStorage, SqlValue } from '../../../js/src/cloudflare/platform.ts';

type Row = Record<string, SqlValue>;
type Table = Map<number, Row>;

/** Tables of rows in memory. */
export class FakeSql implements SqlStorage {
  readonly databaseSize = 0;
  /** Makes every write from now on fail. */
  failure: Error | undefined;
  /** Rows written, as the platform bills them. */
  rowsWritten = 0;
  /** Whether something was written in this turn: the output gate is closed. */
  isGateClosed = false;
  #tables = new Map<string, Table>();
  #committed = new Map<string, Table>();

  exec(query: string, ...bindings: unknown[]): SqlCursor {
    const [verb] = query.split(' ', 1);
    const name = this.#known(/"((?:[^"]|"")+)"/.exec(query)?.[1]?.replaceAll('""', '"') ?? '');
    if (verb !== 'SELECT') this.#write();
    switch (verb) {
      case 'CREATE':
        if (!this.#tables.has(name)) this.#tables.set(name, new Map());
        return cursor([], 0);
      case 'DROP':
        this.#tables.delete(name);
        return cursor([], 0);
      case 'INSERT':
        this.#table(name).set(bindings[0] as number, rowOf(bindings));
        return this.#wrote(1);
      case 'UPDATE':
        this.#table(name);
        return this.#wrote(0);
      case 'DELETE':
        return this.#wrote(this.#delete(this.#table(name), bindings as number[]));
      case 'SELECT':
        return cursor(this.#select(query, name, bindings), 0);
      default:
        throw new Error(`The stand-in does not know ${query}`);
    }
  }

  /** Resolves when all writes so far are committed. */
  committed(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Uncommitted writes are gone. */
  crash(): void {
    this.#tables = copyOf(this.#committed);
    this.isGateClosed = false;
  }

  #write(): void {
    if (this.failure !== undefined) throw this.failure;
    if (this.isGateClosed) return;
    this.isGateClosed = true;
    setImmediate(() => {
      if (!this.isGateClosed) return;
      this.isGateClosed = false;
      this.#committed = copyOf(this.#tables);
    });
  }

  #wrote(rows: number): SqlCursor {
    this.rowsWritten += rows;
    return cursor([], rows);
  }

  /** The name of a table as it was made. */
  #known(name: string): string {
    return [...this.#tables.keys()].find((known) => folded(known) === folded(name)) ?? name;
  }

  #table(name: string): Table {
    const found = this.#tables.get(name);
    if (found === undefined) throw new Error(`no such table: ${name}: SQLITE_ERROR`);
    return found;
  }

  #delete(table: Table, [from, to]: number[]): number {
    const gone = [...table.keys()].filter((id) => id >= (from as number) && id < (to as number));
    for (const id of gone) table.delete(id);
    return gone.length;
  }

  #select(query: string, name: string, bindings: unknown[]): Row[] {
    if (query.includes('sqlite_master')) return [...this.#tables.keys()].map((table) => ({ name: table }));
    const table = this.#table(name);
    if (query.includes('length(bytes)')) {
      const ids = [...table.keys()].sort((a, b) => a - b);
      return ids.map((id) => {
        const row = table.get(id) as Row;
        return { ...row, length: (row['bytes'] as ArrayBuffer).byteLength };
      });
    }
    const [start, length, id] = bindings as [number, number, number];
    const bytes = table.get(id)?.['bytes'] as ArrayBuffer | undefined;
    return bytes === undefined ? [] : [{ bytes: bytes.slice(start - 1, start - 1 + length) }];
  }
}

function folded(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function rowOf([id, version, start, bytes]: unknown[]): Row {
  // Bound bytes are copied, as by SQLite.
  const copy = (bytes as Uint8Array).slice().buffer as ArrayBuffer;
  if (copy.byteLength > 2_000_000) throw new Error('string or blob too big: SQLITE_TOOBIG');
  return { id: id as number, version: version as number, start: start as number, bytes: copy };
}

/** Rows are never changed in place, so only the tables are copied. */
function copyOf(tables: Map<string, Table>): Map<string, Table> {
  return new Map([...tables].map(([name, rows]) => [name, new Map(rows)]));
}

function cursor(rows: Row[], rowsWritten: number): SqlCursor {
  return { toArray: () => rows, rowsRead: rows.length, rowsWritten, [Symbol.iterator]: () => rows[Symbol.iterator]() };
}
