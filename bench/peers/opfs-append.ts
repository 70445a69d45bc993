/**
 * The floor on disk: the same bytes appended to one OPFS file, without index, checksum or memtable.
 *
 * Invariant: a call is one `write` of key and value (and, strict, one `flush`); a batch is one `write` of its entries
 * joined. A get is one `read` of the value, whose place is in a Map. The Map is filled from the file itself when the session
 * settles, never while a clock runs, and so proves the content of the file.
 */

import { cannot, type SyncSession } from '../core/engine.ts';
import { KEY_CHARS, type Key } from '../core/generator.ts';
import { engineOf } from './library.ts';
import { floorFile, removeFloorFile } from './opfs.ts';

const DELETED = -1;
const SLAB_BYTES = 64 << 10;

type Handle = Pick<FileSystemSyncAccessHandle, 'read' | 'write' | 'flush' | 'close'>;

export function appendSession(handle: Handle, flushes: boolean): SyncSession {
  /** The length of the value of each record, or DELETED. */
  const log: number[] = [];
  const index = new Map<string, { at: number; length: number }>();
  const where = { at: 0 };
  let end = 0;
  let scratch = new Uint8Array(SLAB_BYTES * 2);
  let staged = 0;
  let slab = new Uint8Array(SLAB_BYTES);
  let used = 0;

  const stage = (key: Key, value: Uint8Array | undefined): void => {
    if (typeof key !== 'string') cannot('opfs-append', 'tuple');
    const bytes = KEY_CHARS + (value?.length ?? 0);
    if (staged + bytes > scratch.length) {
      const grown = new Uint8Array((staged + bytes) * 2);
      grown.set(scratch.subarray(0, staged));
      scratch = grown;
    }
    for (let i = 0; i < KEY_CHARS; i++) scratch[staged + i] = key.charCodeAt(i);
    if (value !== undefined) scratch.set(value, staged + KEY_CHARS);
    log.push(value === undefined ? DELETED : value.length);
    staged += bytes;
  };
  const commit = (): void => {
    if (staged === 0) return;
    where.at = end;
    const count = handle.write(scratch.subarray(0, staged), where);
    if (count !== staged) throw new Error('A write of the floor fell short.');
    if (flushes) handle.flush();
    end += count;
    staged = 0;
  };
  const write = (key: Key, value?: Uint8Array): void => {
    stage(key, value);
    commit();
  };

  return {
    kind: 'sync',
    set: write,
    delete: (key) => write(key),
    batch: ({ keys, values }) => {
      for (let i = 0; i < keys.length; i++) stage(keys[i] as Key, values[i]);
      commit();
    },
    get: (key) => {
      const place = index.get(key as string);
      if (place === undefined) return undefined;
      if (used + place.length > slab.length) {
        slab = new Uint8Array(Math.max(SLAB_BYTES, place.length));
        used = 0;
      }
      const value = slab.subarray(used, used + place.length);
      used += place.length;
      where.at = place.at;
      if (handle.read(value, where) !== place.length) throw new Error('A read of the floor fell short.');
      return value;
    },
    range: () => cannot('opfs-append', 'range'),
    commit,
    /** Reads the file, and notes the place of the newest value of each key. */
    settle: async () => {
      commit();
      index.clear();
      const bytes = new Uint8Array(end);
      handle.read(bytes, { at: 0 });
      const text = new TextDecoder();
      let at = 0;
      for (const length of log) {
        const key = text.decode(bytes.subarray(at, at + KEY_CHARS));
        at += KEY_CHARS;
        if (length === DELETED) index.delete(key);
        else index.set(key, { at, length });
        at += Math.max(length, 0);
      }
      return true;
    },
    close: async () => {
      commit();
      handle.close();
    },
  };
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
    return appendSession(handle, options.durability === 'strict');
  },
  remove: removeFloorFile,
});
