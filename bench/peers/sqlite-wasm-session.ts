/**
 * A store of the official SQLite build, in the thread of its caller: prepared statements through the C API, bind, step,
 * reset, without the object layer above it.
 *
 * Invariant: arguments are written into one piece of the wasm heap that belongs to the session and are bound in place
 * (SQLITE_STATIC): they stay as they are until the statement is reset. What a row delivers is copied out before that.
 */

import type { Database, Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import type { BatchEntries, Place, PointCall, Sink, SyncSession } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { CHECKPOINT, GROUP, SQL, type StatementName, TIDY } from './sqlite-schema.ts';

const ROW = 100;
const DONE = 101;
const OK = 0;
/** SQLITE_STATIC: the bytes belong to the caller. */
const STATIC = 0;
/** Keys up to this length are read and written here; longer ones by TextEncoder and TextDecoder. */
const SHORT_CHARS = 64;
const KEY_ROOM = 4096;

/** The functions of the C API that calls are made of, as the wasm module exports them. */
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

type Statements = Readonly<Record<StatementName, { readonly pointer: number; finalize(): void }>>;

export class SqliteWasmSession implements SyncSession {
  readonly kind = 'sync';
  readonly #sqlite3: Sqlite3Static;
  readonly #db: Database;
  readonly #api: Exports;
  readonly #close: () => void;
  readonly #statements: Statements;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();
  /** Of the wasm heap: first the key, then the value. */
  #room: number;
  #roomBytes: number;
  #keyBytes = 0;
  /** Joins point calls into transactions; how many are in the one that is open, or nothing. */
  readonly #grouped: boolean;
  #joined = 0;

  /** `close` is called after the database was closed. */
  constructor(sqlite3: Sqlite3Static, db: Database, grouped: boolean, close: () => void) {
    this.#sqlite3 = sqlite3;
    this.#db = db;
    this.#grouped = grouped;
    this.#close = close;
    this.#api = sqlite3.wasm.exports as Exports;
    this.#roomBytes = KEY_ROOM * 2;
    this.#room = sqlite3.wasm.alloc(this.#roomBytes);
    const names = Object.keys(SQL) as StatementName[];
    const prepared = names.map((name) => [name, db.prepare(SQL[name])] as const);
    // A statement has a pointer until it is finalized.
    this.#statements = Object.fromEntries(prepared) as unknown as Statements;
  }

  set(key: Key, value: Uint8Array): void {
    this.#join();
    this.#put(key, value);
  }

  get(key: Key): Uint8Array | undefined {
    this.#join();
    return this.#read(key);
  }

  #read(key: Key): Uint8Array | undefined {
    const api = this.#api;
    const statement = this.#statements.get.pointer;
    this.#bindKey(statement, key);
    const code = api.sqlite3_step(statement);
    const value = code === ROW ? this.#blob(statement, 0) : undefined;
    this.#reset(statement, code, ROW);
    return value;
  }

  delete(key: Key): void {
    this.#join();
    const statement = this.#statements.delete.pointer;
    this.#bindKey(statement, key);
    this.#reset(statement, this.#api.sqlite3_step(statement));
  }

  deleteRange(from: Key, to: Key): void {
    this.#join();
    const statement = this.#statements.deleteRange.pointer;
    const end = this.#encoder.encode(to as string);
    this.#makeRoom(end.length);
    this.#bindKey(statement, from);
    this.#sqlite3.wasm.heap8u().set(end, this.#room + KEY_ROOM);
    this.#api.sqlite3_bind_text(statement, 2, this.#room + KEY_ROOM, end.length, STATIC);
    this.#reset(statement, this.#api.sqlite3_step(statement));
  }

  batch({ keys, values }: BatchEntries): void {
    this.commit();
    this.#run('begin');
    for (let i = 0; i < keys.length; i++) this.#put(keys[i] as Key, values[i] as Uint8Array);
    this.#run('commit');
  }

  transact({ keys, values }: BatchEntries): (Uint8Array | undefined)[] {
    this.commit();
    this.#run('begin');
    const found = keys.map((key) => this.#read(key));
    for (let i = 0; i < keys.length; i++) this.#put(keys[i] as Key, values[i] as Uint8Array);
    this.#run('commit');
    return found;
  }

  range(from: Key | undefined, limit: number, sink: Sink): void {
    const api = this.#api;
    const statement = this.#statements[from === undefined ? 'first' : 'from'].pointer;
    if (from !== undefined) this.#bindKey(statement, from);
    api.sqlite3_bind_int(statement, from === undefined ? 1 : 2, limit);
    let code = api.sqlite3_step(statement);
    for (; code === ROW; code = api.sqlite3_step(statement)) {
      sink.take(this.#text(statement, 0), this.#blob(statement, 1));
    }
    this.#reset(statement, code);
  }

  /** Many point calls in one transaction, in their order: what the worker does with those that came in one message. */
  wave(calls: readonly PointCall[]): (Uint8Array | undefined)[] {
    this.commit();
    this.#run('begin');
    const values = calls.map(({ key, value }) => {
      if (value === undefined) return this.get(key);
      if (value === null) this.delete(key);
      else this.#put(key, value);
      return undefined;
    });
    this.#run('commit');
    return values;
  }

  commit(): void {
    if (this.#joined === 0) return;
    this.#joined = 0;
    this.#run('commit');
  }

  async settle(where: Place): Promise<boolean> {
    this.commit();
    this.#db.exec(where === 'tables' ? TIDY : CHECKPOINT);
    return true;
  }

  async close(): Promise<void> {
    this.commit();
    for (const statement of Object.values(this.#statements)) statement.finalize();
    this.#db.close();
    this.#sqlite3.wasm.dealloc(this.#room);
    this.#close();
  }

  /** In a grouped session: one more call of the transaction, which begins with the first and ends with the last. */
  #join(): void {
    if (!this.#grouped) return;
    if (this.#joined === GROUP) this.commit();
    if (this.#joined++ === 0) this.#run('begin');
  }

  #put(key: Key, value: Uint8Array): void {
    const statement = this.#statements.set.pointer;
    this.#makeRoom(value.length);
    this.#bindKey(statement, key);
    this.#sqlite3.wasm.heap8u().set(value, this.#room + KEY_ROOM);
    this.#api.sqlite3_bind_blob(statement, 2, this.#room + KEY_ROOM, value.length, STATIC);
    this.#reset(statement, this.#api.sqlite3_step(statement));
  }

  #bindKey(statement: number, key: Key): void {
    const text = key as string;
    if (!this.#writeShort(text)) {
      const heap = this.#sqlite3.wasm.heap8u();
      const target = heap.subarray(this.#room, this.#room + KEY_ROOM);
      const { read, written } = this.#encoder.encodeInto(text, target);
      if (read < text.length) throw new RangeError(`A key of ${text.length} characters is too long for this engine.`);
      this.#keyBytes = written;
    }
    this.#api.sqlite3_bind_text(statement, 1, this.#room, this.#keyBytes, STATIC);
  }

  /** Writes a short key of ASCII characters, or answers that it is none. */
  #writeShort(text: string): boolean {
    const { length } = text;
    if (length > SHORT_CHARS) return false;
    const heap = this.#sqlite3.wasm.heap8u();
    const room = this.#room;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      heap[room + i] = code;
    }
    this.#keyBytes = length;
    return true;
  }

  #makeRoom(valueBytes: number): void {
    if (KEY_ROOM + valueBytes <= this.#roomBytes) return;
    const { wasm } = this.#sqlite3;
    wasm.dealloc(this.#room);
    this.#roomBytes = KEY_ROOM + valueBytes * 2;
    this.#room = wasm.alloc(this.#roomBytes);
  }

  #text(statement: number, column: number): string {
    const at = this.#api.sqlite3_column_text(statement, column);
    const end = at + this.#api.sqlite3_column_bytes(statement, column);
    const heap = this.#sqlite3.wasm.heap8u();
    if (end - at > SHORT_CHARS) return this.#decoder.decode(heap.subarray(at, end));
    let text = '';
    for (let i = at; i < end; i++) {
      const byte = heap[i] as number;
      if (byte > 0x7f) return this.#decoder.decode(heap.subarray(at, end));
      text += String.fromCharCode(byte);
    }
    return text;
  }

  #blob(statement: number, column: number): Uint8Array {
    const at = this.#api.sqlite3_column_blob(statement, column);
    return this.#sqlite3.wasm.heap8u().slice(at, at + this.#api.sqlite3_column_bytes(statement, column));
  }

  #run(name: 'begin' | 'commit'): void {
    const statement = this.#statements[name].pointer;
    this.#reset(statement, this.#api.sqlite3_step(statement));
  }

  /** Makes a statement ready for its next use; throws what went wrong with this one. */
  #reset(statement: number, code: number, also = DONE): void {
    const reset = this.#api.sqlite3_reset(statement);
    if ((code === DONE || code === also) && reset === OK) return;
    const { capi } = this.#sqlite3;
    throw new Error(`SQLite: ${capi.sqlite3_errmsg(this.#db.pointer ?? 0)} (${capi.sqlite3_js_rc_str(code)}).`);
  }
}
