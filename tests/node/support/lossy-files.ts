/**
 * File calls over real files. On demand they lose what a power cut could lose, and are full.
 *
 * Invariant: it loses all that may be lost. Of a file these are all bytes since its last fdatasync, of a directory all entries that were
 * made since its last fsync. Removed files come back only if their directory was not synced since. The stores never count on that.
 */

import * as fs from 'node:fs';
import { dirname } from 'node:path';
import type { FileCalls } from '../../../js/src/storage/fs/calls.ts';

interface Kept {
  /** The bytes that a loss of power leaves of the file. */
  flushed: Buffer;
  /** Whether its name is durable. */
  named: boolean;
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: refused by the test`), { code });
}

/** The calls of one test. */
export class LossyFiles implements FileCalls {
  readonly #open = new Map<number, string>();
  readonly #files = new Map<string, Kept>();
  #room = Number.POSITIVE_INFINITY;

  openSync(path: string, flags: number | string, mode?: number): number {
    const isThere = fs.existsSync(path);
    const file = fs.openSync(path, flags, mode);
    this.#open.set(file, path);
    if (!isThere) this.#files.set(path, { flushed: Buffer.alloc(0), named: false });
    return file;
  }

  closeSync(file: number): void {
    this.#open.delete(file);
    fs.closeSync(file);
  }

  readSync(file: number, into: Uint8Array, from: number, length: number, at: number): number {
    return fs.readSync(file, into, from, length, at);
  }

  /** As ext4 does it: the bytes that fit are written, and the next call is refused. */
  writeSync(file: number, bytes: Uint8Array, from: number, length: number, at: number): number {
    const { size } = fs.fstatSync(file);
    const end = Math.min(at + length, Math.max(size, size + this.#room));
    const count = Math.max(0, end - at);
    if (count === 0 && length > 0) throw failure('ENOSPC');
    this.#room -= Math.max(0, end - size);
    return fs.writeSync(file, bytes, from, count, at);
  }

  ftruncateSync(file: number, bytes: number): void {
    const { size } = fs.fstatSync(file);
    if (bytes - size > this.#room) throw failure('ENOSPC');
    this.#room -= bytes - size;
    fs.ftruncateSync(file, bytes);
  }

  fdatasyncSync(file: number): void {
    const kept = this.#files.get(this.#open.get(file) ?? '');
    if (kept !== undefined) kept.flushed = fs.readFileSync(this.#open.get(file) ?? '');
  }

  fsyncSync(directory: number): void {
    const path = this.#open.get(directory);
    for (const [file, kept] of this.#files) if (dirname(file) === path) kept.named = true;
  }

  unlinkSync(path: string): void {
    fs.unlinkSync(path);
    this.#files.delete(path);
  }

  rmdirSync(path: string): void {
    fs.rmdirSync(path);
  }

  setRoom(bytes: number | undefined): void {
    this.#room = bytes ?? Number.POSITIVE_INFINITY;
  }

  /** Closes everything and leaves the state after the power is back. The claims of dead holders stay. */
  losePower(): void {
    for (const file of this.#open.keys()) fs.closeSync(file);
    this.#open.clear();
    for (const [path, { flushed, named }] of this.#files) {
      if (named) fs.writeFileSync(path, flushed);
      else fs.rmSync(path, { force: true });
    }
  }
}
