/**
 * Cutting changes into atomic operations that Deno KV takes.
 *
 * Invariant: each group that `pack` returns fits within the platform's limits, beside the head, which every operation checks and may
 * write. The limits: 1,000 mutations, 80 KiB of keys, 800 KiB in all. It counts at least as much as the platform does: a key twice.
 */

import type { KvKey, KvKeyPart } from './platform.ts';

/** Longest key. */
export const KEY_BYTES_MAX = 2048;
/** Keys that one `getMany` may have. */
export const READ_KEYS_MAX = 10;
const MUTATIONS_MAX = 1000;
const ALL_KEYS_BYTES_MAX = 80 * 1024;
const OPERATION_BYTES_MAX = 800 * 1024;
/** The head: checked and set, a value of a few numbers and a name; and a row of the journal, which is checked. */
const HEAD_KEYS = 4;
const HEAD_VALUE_BYTES = 1024;

/** One key that is to be set, or deleted. */
export interface Change {
  readonly key: KvKey;
  /** Undefined: deletes. */
  readonly bytes?: Uint8Array | undefined;
}

/** Bytes of a key as the platform encodes it, at most. */
export function keyBytes(key: KvKey): number {
  return key.reduce((bytes: number, part) => bytes + partBytes(part), 0);
}

/** Cuts changes, in their order, into groups; each group is one operation. `headKeyBytes`: the bytes of the head's key. */
export function pack(changes: readonly Change[], headKeyBytes: number): Change[][] {
  const groups: Change[][] = [];
  let group: Change[] = [];
  let [keys, all] = [0, 0];
  for (const change of changes) {
    const key = keyBytes(change.key);
    const bytes = 2 * key + (change.bytes?.length ?? 0);
    const isFull =
      group.length + 1 >= MUTATIONS_MAX || keys + key > ALL_KEYS_BYTES_MAX || all + bytes > OPERATION_BYTES_MAX;
    if (group.length === 0 || isFull) {
      group = [];
      groups.push(group);
      keys = HEAD_KEYS * headKeyBytes;
      all = 2 * keys + HEAD_VALUE_BYTES;
    }
    group.push(change);
    keys += key;
    all += bytes;
  }
  return groups;
}

/** Text and bytes end with a mark, and each zero byte in them takes two. */
function partBytes(part: KvKeyPart): number {
  if (typeof part === 'string') return 2 + new TextEncoder().encode(part.replaceAll('\0', '\0\0')).length;
  if (typeof part === 'number') return 9;
  if (typeof part === 'boolean') return 1;
  if (typeof part === 'bigint') return 6 + part.toString(16).length;
  return 2 + 2 * part.length;
}
