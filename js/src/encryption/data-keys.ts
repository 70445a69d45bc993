/**
 * Data keys: the random keys that encrypt. One is current, and while files of earlier ones are left, those are there too.
 *
 *     keys    { u16 number | key 32 B }*     numbers from 1 on, ascending: the last one is current
 *
 * Invariant: a number is never used for a second key. A caller that gets keys overwrites them after their use: see `erase`.
 */

const KEY_BYTES = 32;
const ENTRY_BYTES = 2 + KEY_BYTES;
/** How many data keys there may be at a time. */
export const DATA_KEYS_MAX = 8;
/** The bytes of that many. */
export const DATA_KEYS_BYTES_MAX: number = DATA_KEYS_MAX * ENTRY_BYTES;
const NUMBER_MAX = 0xffff;

/** The numbers of keys, ascending. */
export function numbersOf(keys: Uint8Array): number[] {
  return Array.from({ length: keys.length / ENTRY_BYTES }, (_, i) => numberAt(keys, i * ENTRY_BYTES));
}

/** The key with the highest number. */
export function currentOf(keys: Uint8Array): Uint8Array<ArrayBuffer> {
  return keys.slice(-KEY_BYTES);
}

/**
 * The keys with one more, which is current from now on; those that are neither current nor in `inUse` are left out. Undefined if there would
 * be too many.
 */
export function withNext(keys: Uint8Array, inUse: readonly number[]): Uint8Array<ArrayBuffer> | undefined {
  const last = numbersOf(keys).at(-1) ?? 0;
  const kept = numbersOf(keys).flatMap((number, i) => {
    const isKept = number === last || inUse.includes(number);
    return isKept ? [...keys.subarray(i * ENTRY_BYTES, (i + 1) * ENTRY_BYTES)] : [];
  });
  if (kept.length >= DATA_KEYS_BYTES_MAX || last === NUMBER_MAX) return undefined;
  const number = last + 1;
  const key = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return Uint8Array.of(...kept, number & 0xff, number >> 8, ...key);
}

/** The keys as a slot has them: as long as the most keys, so that their number cannot be seen. */
export function padded(keys: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(DATA_KEYS_BYTES_MAX);
  bytes.set(keys);
  return bytes;
}

/** The keys of a slot. */
export function unpadded(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  let end = 0;
  while (end < bytes.length && numberAt(bytes, end) !== 0) end += ENTRY_BYTES;
  return bytes.slice(0, end);
}

/** Overwrites keys. */
export function erase(...keys: Uint8Array[]): void {
  for (const bytes of keys) bytes.fill(0);
}

function numberAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) * 256;
}
