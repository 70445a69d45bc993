/**
 * A store of the official SQLite build, in the thread of its caller: prepared statements through the C API, bind, step,
 * reset, without the object layer above it.
 *
 * Invariant: arguments are written into the session's own piece of the wasm heap and bound in place (SQLITE_STATIC), so they
 * stay unchanged until the statement is reset. The columns of a row are copied out before that.
 */

import type { Database, Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import type { Place } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { CHECKPOINT, SQL, type StatementName, TIDY } from './sql-schema.ts';
import { type Statements, sqlSession } from './sql-session.ts';

const ROW = 100;
const DONE = 101;
const OK = 0;
/** SQLITE_STATIC: the bytes belong to the caller. */
const STATIC = 0;
/** Keys up to this length are read and written here; longer ones by TextEncoder and TextDecoder. */
const SHORT_CHARS = 64;
const KEY_ROOM = 4096;

/** The functions of the C API that calls need, as the wasm module exports them. */
interface Exports {
  sqlite3_bind_text(statement: number, index: number, at: number, bytes: number, free: number): number;
  sqlite3_bind_blob(statement: number, index: number, at: number, bytes: number, free: number): number;
  sqlite3_bind_int(statement: number, index: number, value: number): number;
  sqlite3_step(statement: number): number;
  sqlite3_reset(statement: number): number;
  sqlite3_column_text(statement: number, column: number): number;
  sqlite3_column_blob(statement: number, column: number): number;
  sqlite3_column_bytes(statement: number, column: number): number;
}

/** A session that joins up to `group` point calls into a transaction. `release` is called after the database was closed. */
export function sqliteWasmSession({ wasm, capi }: Sqlite3Static, db: Database, group: number, release: () => void) {
  const api = wasm.exports as Exports;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const prepared = (Object.keys(SQL) as StatementName[]).map((name) => [name, db.prepare(SQL[name])] as const);
  // A statement has a pointer until it is finalized.
  const pointers = prepared.map(([name, { pointer }]) => [name, pointer]);
  const statements = Object.fromEntries(pointers) as unknown as Readonly<Record<StatementName, number>>;
  /** In the wasm heap: first the key, then the value. */
  let roomBytes = KEY_ROOM * 2;
  let room = wasm.alloc(roomBytes);

  /** Makes a statement ready for its next use; throws if this one failed. */
  const reset = (statement: number, code: number, also = DONE): void => {
    const after = api.sqlite3_reset(statement);
    if ((code === DONE || code === also) && after === OK) return;
    throw new Error(`SQLite: ${capi.sqlite3_errmsg(db.pointer ?? 0)} (${capi.sqlite3_js_rc_str(code)}).`);
  };
  const run = (statement: number): void => reset(statement, api.sqlite3_step(statement));

  /** Writes a short key of ASCII characters; its length, or -1 for any other key. */
  const writeShort = (text: string): number => {
    const { length } = text;
    if (length > SHORT_CHARS) return -1;
    const heap = wasm.heap8u();
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return -1;
      heap[room + i] = code;
    }
    return length;
  };
  const bindKey = (statement: number, key: Key): void => {
    const text = key as string;
    let bytes = writeShort(text);
    if (bytes < 0) {
      const { read, written } = encoder.encodeInto(text, wasm.heap8u().subarray(room, room + KEY_ROOM));
      if (read < text.length) throw new RangeError(`A key of ${text.length} characters is too long for this engine.`);
      bytes = written;
    }
    api.sqlite3_bind_text(statement, 1, room, bytes, STATIC);
  };
  const place = (bytes: Uint8Array): void => {
    if (KEY_ROOM + bytes.length > roomBytes) {
      wasm.dealloc(room);
      roomBytes = KEY_ROOM + bytes.length * 2;
      room = wasm.alloc(roomBytes);
    }
    wasm.heap8u().set(bytes, room + KEY_ROOM);
  };
  const textOf = (statement: number, column: number): string => {
    const at = api.sqlite3_column_text(statement, column);
    const end = at + api.sqlite3_column_bytes(statement, column);
    const heap = wasm.heap8u();
    if (end - at > SHORT_CHARS) return decoder.decode(heap.subarray(at, end));
    let text = '';
    for (let i = at; i < end; i++) {
      const byte = heap[i] as number;
      if (byte > 0x7f) return decoder.decode(heap.subarray(at, end));
      text += String.fromCharCode(byte);
    }
    return text;
  };
  const blobOf = (statement: number, column: number): Uint8Array => {
    const at = api.sqlite3_column_blob(statement, column);
    return wasm.heap8u().slice(at, at + api.sqlite3_column_bytes(statement, column));
  };

  const statementCalls: Statements = {
    set: (key, value) => {
      place(value);
      bindKey(statements.set, key);
      api.sqlite3_bind_blob(statements.set, 2, room + KEY_ROOM, value.length, STATIC);
      run(statements.set);
    },
    get: (key) => {
      bindKey(statements.get, key);
      const code = api.sqlite3_step(statements.get);
      const value = code === ROW ? blobOf(statements.get, 0) : undefined;
      reset(statements.get, code, ROW);
      return value;
    },
    delete: (key) => {
      bindKey(statements.delete, key);
      run(statements.delete);
    },
    deleteRange: (from, to) => {
      const end = encoder.encode(to as string);
      place(end);
      bindKey(statements.deleteRange, from);
      api.sqlite3_bind_text(statements.deleteRange, 2, room + KEY_ROOM, end.length, STATIC);
      run(statements.deleteRange);
    },
    range: (from, limit, sink) => {
      const statement = statements[from === undefined ? 'first' : 'from'];
      if (from !== undefined) bindKey(statement, from);
      api.sqlite3_bind_int(statement, from === undefined ? 1 : 2, limit);
      let code = api.sqlite3_step(statement);
      for (; code === ROW; code = api.sqlite3_step(statement)) sink.take(textOf(statement, 0), blobOf(statement, 1));
      reset(statement, code);
    },
    begin: () => run(statements.begin),
    commit: () => run(statements.commit),
  };
  const between = {
    settle: async (where: Place) => {
      db.exec(where === 'tables' ? TIDY : CHECKPOINT);
      return true;
    },
    close: async () => {
      for (const [, statement] of prepared) statement.finalize();
      db.close();
      wasm.dealloc(room);
      release();
    },
  };
  return sqlSession(statementCalls, between, group);
}
