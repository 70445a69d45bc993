/**
 * The floor on disk: the same bytes appended to one OPFS file, without index, checksum or memtable.
 *
 * Invariant: a call is one `write` of key and value (and, strict, one `flush`); a batch is one `write` of its entries
 * joined. A get is one `read` of the value, whose place is in a Map. The Map is filled from the file itself when the session
 * settles, never while a clock runs, and so proves the content of the file.
 */

import { type BatchEntries, cannot, type SyncSession } from '../core/engine.ts';
import { KEY_CHARS, type Key } from '../core/generator.ts';
import { engineOf } from './library.ts';
import { floorFile, removeFloorFile } from './opfs.ts';

/** In place of the length of a value. */
const DELETED = -1;
const SLAB_BYTES = 64 << 10;

/** A file, in a browser or on Node. */
export type Handle = Pick<FileSystemSyncAccessHandle, 'read' | 'write' | 'flush' | 'close'>;

export class AppendSession implements SyncSession {
  readonly kind = 'sync';
  readonly #handle: Handle;
  readonly #flushes: boolean;
  /** The length of the value of each record, or DELETED. */
  readonly #log: number[] = [];
  readonly #index = new Map<string, { at: number; length: number }>();
  readonly #at = { at: 0 };
  #end = 0;
  #scratch = new Uint8Array(SLAB_BYTES * 2);
  #staged = 0;
  #slab = new Uint8Array(SLAB_BYTES);
  #used = 0;

  constructor(handle: Handle, flushes: boolean) {
    this.#handle = handle;
    this.#flushes = flushes;
  }

  set(key: Key, value: Uint8Array): void {
    this.#stage(key, value);
    this.commit();
  }

  delete(key: Key): void {
    this.#stage(key, undefined);
    this.commit();
  }

  batch({ keys, values }: BatchEntries): void {
    for (let i = 0; i < keys.length; i++) this.#stage(keys[i] as Key, values[i]);
    this.commit();
  }

  get(key: Key): Uint8Array | undefined {
    const place = this.#index.get(key as string);
    if (place === undefined) return undefined;
    if (this.#used + place.length > this.#slab.length) {
      this.#slab = new Uint8Array(Math.max(SLAB_BYTES, place.length));
      this.#used = 0;
    }
    const value = this.#slab.subarray(this.#used, this.#used + place.length);
    this.#used += place.length;
    this.#at.at = place.at;
    if (this.#handle.read(value, this.#at) !== place.length) throw new Error('A read of the floor fell short.');
    return value;
  }

  range(): void {
    cannot('opfs-append', 'range');
  }

  commit(): void {
    if (this.#staged === 0) return;
    this.#at.at = this.#end;
    const count = this.#handle.write(this.#scratch.subarray(0, this.#staged), this.#at);
    if (count !== this.#staged) throw new Error('A write of the floor fell short.');
    if (this.#flushes) this.#handle.flush();
    this.#end += count;
    this.#staged = 0;
  }

  /** Reads the file, and notes the place of the newest value of each key. */
  async settle(): Promise<boolean> {
    this.commit();
    this.#index.clear();
    const bytes = new Uint8Array(this.#end);
    this.#handle.read(bytes, { at: 0 });
    const text = new TextDecoder();
    let at = 0;
    for (const length of this.#log) {
      const key = text.decode(bytes.subarray(at, at + KEY_CHARS));
      at += KEY_CHARS;
      if (length === DELETED) this.#index.delete(key);
      else this.#index.set(key, { at, length });
      at += Math.max(length, 0);
    }
    return true;
  }

  async close(): Promise<void> {
    this.commit();
    this.#handle.close();
  }

  #stage(key: Key, value: Uint8Array | undefined): void {
    if (typeof key !== 'string') cannot('opfs-append', 'tuple');
    const bytes = KEY_CHARS + (value?.length ?? 0);
    if (this.#staged + bytes > this.#scratch.length) {
      const grown = new Uint8Array((this.#staged + bytes) * 2);
      grown.set(this.#scratch.subarray(0, this.#staged));
      this.#scratch = grown;
    }
    const scratch = this.#scratch;
    let at = this.#staged;
    for (let i = 0; i < KEY_CHARS; i++) scratch[at++] = key.charCodeAt(i);
    if (value !== undefined) scratch.set(value, at);
    this.#log.push(value === undefined ? DELETED : value.length);
    this.#staged += bytes;
  }
}

export const opfsAppend = engineOf({
  name: 'opfs-append',
  about: 'One bare OPFS append per set, delete or batch; a get is one read where a Map says the value lies.',
  role: 'floor',
  accesses: ['worker'],
  abilities: ['set', 'get', 'delete', 'batch'],
  async open(store, options) {
    const handle = await (await floorFile(store)).createSyncAccessHandle();
    handle.truncate(0);
    return new AppendSession(handle, options.durability === 'strict');
  },
  remove: removeFloorFile,
});
