/**
 * Keys whose parts were all read.
 *
 * A key can run code of the user while it is read: getters and proxies of arrays. So it is read once, before anything is written,
 * and what goes on with it runs none: that code can neither change a key between two looks at it nor write where one is written.
 *
 * Invariant: in a settled key every array is a copy; reading it gives the same each time.
 */

import { VarveError } from '../errors.ts';
import type { Key } from '../types.ts';

/** Most bytes of an encoded key: 64 KiB of content and one type byte. */
export const KEY_BYTES_MAX = 65_537;
/** Arrays in arrays at most. */
export const KEY_DEPTH_MAX = 32;

/** Elements that the key being settled may still have: each takes a byte at least. */
let elements_left = 0;

/** A key whose parts were all read, once: arrays are copies. Throws `VARVE_INVALID_KEY` for one that cannot be read. */
export function settled(key: Key): Key {
  if (typeof key !== 'object' || key === null) return key;
  elements_left = KEY_BYTES_MAX;
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
  // Not a number, if a proxy says so.
  if (!(length <= elements_left)) throw tooLong();
  elements_left -= length;
  const copy: Key[] = [];
  for (let i = 0; i < length; i++) copy.push(copyOf(key[i] as Key, depth + 1));
  return copy;
}

/** The refusal of a key that is too long. */
export function tooLong(): VarveError {
  return invalid(`A key takes at most ${KEY_BYTES_MAX} bytes; this one is longer. Shorten it.`);
}

/** The refusal of a key. */
export function invalid(message: string, cause?: unknown): VarveError {
  return new VarveError('VARVE_INVALID_KEY', message, cause === undefined ? undefined : { cause });
}
