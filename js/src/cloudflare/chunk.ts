/**
 * One chunk of a slot: its stored part, and its bytes while they are being written.
 *
 *     |<------------- base ------------->|                      stored
 *                            |<- patch ->|<- dirty ->|          stored, in memory only
 *
 * Invariant: `read` returns the base, with the patch and the dirty bytes on top of it, and zeros after them. `commit` writes one
 * row; after that nothing is dirty.
 */

import type { ChunkTable, StoredChunk } from './chunk-table.ts';
import { CHUNK_BYTES } from './chunk-table.ts';

/** A patch may always be this long. A longer patch is limited to a few times the newly written bytes. */
const PATCH_BYTES = 16 * 1024;
/** How many times the newly written bytes a patch may be longer than that. */
const PATCH_TIMES = 4;
/** Memory is allocated in steps of this many bytes. */
const BUFFER_STEP = 4096;

/** A chunk. */
export class Chunk {
  /** Bytes from the start of the chunk to the end of what was written. */
  length: number;
  /** The bytes, when they are in memory; zeros from `length` on. */
  #buffer: Uint8Array | undefined;
  #version: number;
  #base: number;
  #hasPatch: boolean;
  #patchStart: number;
  #patchEnd: number;
  /** The range that was written since it was stored; empty if both are equal. */
  #dirtyStart = 0;
  #dirtyEnd = 0;
  /** The base has to be written anew, because the chunk became shorter. */
  #isCut = false;
  readonly #table: ChunkTable;
  readonly #slot: number;
  readonly #chunk: number;

  constructor(table: ChunkTable, stored: StoredChunk) {
    this.#table = table;
    this.#slot = stored.slot;
    this.#chunk = stored.chunk;
    this.#version = stored.version;
    this.#base = stored.base;
    this.#hasPatch = stored.hasPatch;
    this.#patchStart = stored.patchStart;
    this.#patchEnd = stored.patchEnd;
    this.length = Math.max(stored.base, stored.patchEnd);
  }

  /** A chunk without a stored part. */
  static empty(table: ChunkTable, slot: number, chunk: number): Chunk {
    return new Chunk(table, { slot, chunk, version: 0, base: 0, hasPatch: false, patchStart: 0, patchEnd: 0 });
  }

  get isDirty(): boolean {
    return this.#dirtyEnd > this.#dirtyStart || this.#isCut;
  }

  /** The bytes of memory that its content uses. */
  get bytesInMemory(): number {
    return this.#buffer?.length ?? 0;
  }

  /** Releases the bytes in memory, unless some of them are not stored yet. */
  release(): void {
    if (!this.isDirty) this.#buffer = undefined;
  }

  /** Fills `into` with the bytes from `from` on. */
  read(from: number, into: Uint8Array): void {
    if (this.#buffer !== undefined) {
      const known = this.#buffer.subarray(from, from + into.length);
      into.set(known);
      into.fill(0, known.length);
      return;
    }
    const base = from < this.#base ? this.#table.read(this.#slot, this.#chunk, 'base', from, into.length) : NOTHING;
    into.set(base);
    into.fill(0, base.length);
    const start = Math.max(from, this.#patchStart);
    const end = Math.min(from + into.length, this.#patchEnd);
    if (start >= end) return;
    into.set(this.#table.read(this.#slot, this.#chunk, 'patch', start - this.#patchStart, end - start), start - from);
  }

  /** Writes bytes at `at`, in memory. */
  write(at: number, bytes: Uint8Array): void {
    const end = at + bytes.length;
    const coversAll = at === 0 && end >= this.length;
    this.#bufferOf(Math.max(end, this.length), coversAll).set(bytes, at);
    this.#dirtyStart = this.isDirty ? Math.min(this.#dirtyStart, at) : at;
    this.#dirtyEnd = Math.max(this.#dirtyEnd, end);
    this.length = Math.max(this.length, end);
  }

  /** Removes everything after `length`, in memory. */
  cut(length: number): void {
    if (length >= this.length) return;
    this.#bufferOf(this.length, false).fill(0, length);
    this.length = length;
    this.#dirtyEnd = Math.min(this.#dirtyEnd, length);
    this.#dirtyStart = Math.min(this.#dirtyStart, this.#dirtyEnd);
    this.#isCut = true;
  }

  /** Writes the dirty bytes as one row. */
  commit(): void {
    const buffer = this.#buffer;
    if (buffer === undefined || !this.isDirty) return;
    const isPatched = this.#patchEnd > this.#patchStart;
    const start = isPatched ? Math.min(this.#patchStart, this.#dirtyStart) : this.#dirtyStart;
    const end = Math.max(this.#patchEnd, this.#dirtyEnd);
    if (this.#isCut || !this.#pays(end - start)) this.#putBase(buffer);
    else this.#putPatch(buffer, start, end);
    this.#dirtyStart = 0;
    this.#dirtyEnd = 0;
    this.#isCut = false;
  }

  /** Whether a patch of `length` bytes is better than a new base, for this write and the next ones. */
  #pays(length: number): boolean {
    const dirty = this.#dirtyEnd - this.#dirtyStart;
    return this.#base > 0 && length <= PATCH_BYTES + PATCH_TIMES * dirty && length * 2 <= this.length;
  }

  #putBase(buffer: Uint8Array): void {
    // From now on a stored patch has an old version, so it is ignored.
    if (this.#hasPatch) this.#version += 1;
    const bytes = buffer.subarray(0, this.length);
    this.#table.put(this.#slot, this.#chunk, 'base', { version: this.#version, start: 0, bytes });
    this.#base = this.length;
    this.#patchStart = 0;
    this.#patchEnd = 0;
  }

  #putPatch(buffer: Uint8Array, start: number, end: number): void {
    const bytes = buffer.subarray(start, end);
    this.#table.put(this.#slot, this.#chunk, 'patch', { version: this.#version, start, bytes });
    this.#hasPatch = true;
    this.#patchStart = start;
    this.#patchEnd = end;
  }

  /** Loads the bytes into memory, with room for `capacity` bytes. */
  #bufferOf(capacity: number, isReplaced: boolean): Uint8Array {
    const buffer = this.#buffer;
    if (buffer !== undefined && buffer.length >= capacity) return buffer;
    const wanted = Math.max(capacity, (buffer?.length ?? 0) * 2);
    const bytes = new Uint8Array(Math.min(CHUNK_BYTES, Math.ceil(wanted / BUFFER_STEP) * BUFFER_STEP));
    if (buffer !== undefined) bytes.set(buffer);
    else if (!isReplaced) this.read(0, bytes.subarray(0, this.length));
    this.#buffer = bytes;
    return bytes;
  }
}

const NOTHING = new Uint8Array(0);
