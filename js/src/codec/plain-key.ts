/**
 * Plain keys: all their parts were read once.
 *
 * Reading a key can run code of the user: getters and proxies of arrays. So a key is read once, before anything is written, and
 * later uses of it run no such code. So that code cannot change a key between two reads, and cannot make a write while a key is
 * being written.
 *
 * Invariant: in a plain key every array is a copy; every read of it returns the same.
 */

import { VarveError } from '../errors.ts';
import type { Key } from '../types.ts';

/** Most bytes of an encoded key: 64 KiB of content and one type byte. */
export const KEY_BYTES_MAX = 65_537;
/** Most levels of arrays in arrays. */
export const KEY_DEPTH_MAX = 32;

/** Elements that the key being read may still have: each takes at least one byte. */
let elementsLeft = 0;

/** Makes a key plain: reads all its parts once, and copies arrays. Throws `VARVE_INVALID_KEY` for a key that cannot be read. */
export function plainKey(key: Key): Key {
  if (typeof key !== 'object' || key === null) return key;
  elementsLeft = KEY_BYTES_MAX;
  try {
    return copyOf(key, 0);
  } catch (error) {
    if (error instanceof VarveError) throw error;
    throw invalid('A key cannot be read: a getter, or a proxy, threw.', error);
  }
}

function copyOf(key: Key, depth: number): Key {
  if (!Array.isArray(key)) return key;
  if (depth >= KEY_DEPTH_MAX) throw invalid(`A key nests at most ${KEY_DEPTH_MAX} arrays.`);
  const length = Number(key.length);
  // A proxy may return a length that is not a number.
  if (!(length <= elementsLeft)) throw tooLong();
  elementsLeft -= length;
  const copy: Key[] = [];
  for (let i = 0; i < length; i++) copy.push(copyOf(key[i] as Key, depth + 1));
  return copy;
}

/** The error for a key that is too long. */
export function tooLong(): VarveError {
  return invalid(`The content of a key takes at most ${KEY_BYTES_MAX - 1} bytes. Shorten it.`);
}

/** The error for an invalid key. */
export function invalid(message: string, cause?: unknown): VarveError {
  return new VarveError('VARVE_INVALID_KEY', message, cause === undefined ? undefined : { cause });
}
