/**
 * The range that a deletion was called with, computed from its bytes.
 *
 * Invariant: the returned range has exactly the keys that the bytes have, but it may be written in another form. In bytes, a range
 * after a key begins at the bytes of that key and a zero. A range with a prefix ends at the prefix with its last byte incremented.
 */

import { decodeKey } from '../codec/key-reader.ts';
import { compareBytes, successor } from '../codec/range.ts';
import type { Key, KeyCodec, KeyRange } from '../types.ts';

/** A range end that begins with this byte is after all keys. */
const RESERVED = 0xff;

/** The key with these bytes, if there is one. */
function attempt(bytes: Uint8Array): Key | undefined {
  try {
    return decodeKey(bytes);
  } catch {
    return undefined;
  }
}

/** The key directly before these bytes, if there is one. */
function before(bytes: Uint8Array): Key | undefined {
  return bytes.at(-1) === 0 ? attempt(bytes.subarray(0, -1)) : undefined;
}

/** The range from `start` up to before `end`. */
export function deletedRange<K>(start: Uint8Array, end: Uint8Array, codec: KeyCodec<K> | undefined): KeyRange<K> {
  const mapped = (key: Key): K => (codec === undefined ? (key as K) : codec.decode(key));
  const range: KeyRange<K> = {};
  if (end[0] !== RESERVED) {
    for (let length = 1; length <= start.length; length++) {
      const bytes = start.subarray(0, length);
      if (compareBytes(successor(bytes), end) !== 0) continue;
      const prefix = attempt(bytes);
      if (typeof prefix !== 'string' && !(prefix instanceof Uint8Array) && !Array.isArray(prefix)) continue;
      range.prefix = prefix as string | Uint8Array | readonly Key[];
      if (length === start.length) return range;
      break;
    }
    if (range.prefix === undefined) {
      const last = before(end);
      if (last !== undefined) range.lte = mapped(last);
      else range.lt = mapped(decodeKey(end));
    }
  }
  if (start.length > 0) {
    const first = before(start);
    if (first !== undefined) range.gt = mapped(first);
    else range.gte = mapped(decodeKey(start));
  }
  return range;
}
