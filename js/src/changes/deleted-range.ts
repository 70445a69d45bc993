/**
 * The range that a deletion was called with, computed from its bytes. In a view it is the part of the range that lies in the view.
 *
 * Invariant: the returned range has exactly the keys that the bytes have, but it may be written in another form. In bytes, a range
 * after a key begins at the bytes of that key and a zero. A range with a prefix ends at the prefix with its last byte incremented.
 */

import type { KeyFormat } from '../codec/key-format.ts';
import { decodeKey } from '../codec/key-reader.ts';
import { compareBytes, successor } from '../codec/range.ts';
import { RESERVED } from '../codec/reserved-key.ts';
import type { Key, KeyRange } from '../types.ts';

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

/** The range from `start` up to before `end`, as far as the format has keys there. */
export function deletedRange<K>(start: Uint8Array, end: Uint8Array, keys: KeyFormat<K>): KeyRange<K> {
  const { first, prefix: within } = keys;
  const range: KeyRange<K> = {};
  const isOpen = first.length === 0 ? end[0] === RESERVED : compareBytes(end, successor(first)) >= 0;
  if (!isOpen) {
    for (let length = first.length + 1; length <= start.length; length++) {
      const bytes = start.subarray(0, length);
      if (compareBytes(successor(bytes), end) !== 0) continue;
      const prefix = attempt(bytes);
      if (Array.isArray(prefix)) range.prefix = prefix.slice(within.length);
      else if (typeof prefix === 'string' || prefix instanceof Uint8Array) range.prefix = prefix;
      else continue;
      if (length === start.length) return range;
      break;
    }
    if (range.prefix === undefined) {
      const last = before(end);
      if (last !== undefined) range.lte = keys.own(last);
      else range.lt = keys.own(decodeKey(end));
    }
  }
  if (compareBytes(start, first) > 0) {
    const key = before(start);
    if (key !== undefined) range.gt = keys.own(key);
    else range.gte = keys.own(decodeKey(start));
  }
  return range;
}
