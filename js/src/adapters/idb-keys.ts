/**
 * Keys of IndexedDB as keys of a view: `[kind, content]`. So they have the order of IndexedDB: numbers, dates, strings, bytes, arrays.
 *
 * Invariant: strings are stored as big-endian UTF-16, because IndexedDB compares code units and takes lone surrogates.
 */

import type { Key, KeyRange } from '../types.ts';

/**
 * A key of IndexedDB: what its `IDBValidKey` is. Bytes are returned as an ArrayBuffer. Strings of 16,000 characters, 32,000 bytes and 15
 * arrays inside one another always fit; a key that does not fit is refused with `VARVE_INVALID_KEY`.
 */
export type IdbKey = number | string | Date | ArrayBuffer | ArrayBufferView | IdbKey[];

const NUMBER = 0;
const DATE = 1;
const STRING = 2;
const BYTES = 3;
const ARRAY = 4;
/** The key behind all of them. */
export const END = 5;
/** The range of all of them. The key `[]` of the view is before it, which is a key of the store around the view. */
export const ALL: KeyRange = { gte: NUMBER, lt: END };

/** The key of the view. Throws a `DataError`, as IndexedDB does, for what is no key; `around` has the arrays that it is in. */
export function toKey(key: unknown, around: readonly unknown[] = []): Key {
  if (typeof key === 'number' && !Number.isNaN(key)) return [NUMBER, key];
  if (typeof key === 'string') return [STRING, toUnits(key)];
  if (key instanceof Date && !Number.isNaN(key.getTime())) return [DATE, key.getTime()];
  if (key instanceof ArrayBuffer) return [BYTES, new Uint8Array(key)];
  if (ArrayBuffer.isView(key)) return [BYTES, new Uint8Array(key.buffer, key.byteOffset, key.byteLength)];
  if (!Array.isArray(key) || around.includes(key)) throw new DOMException('This is not a valid key.', 'DataError');
  // An array with holes is no key: the spread makes them undefined.
  return [ARRAY, [...key].map((part) => toKey(part, [...around, key]))];
}

/** The key of IndexedDB. */
export function fromKey(key: Key): IdbKey {
  const [kind, content] = key as [number, Key];
  switch (kind) {
    case DATE:
      return new Date(content as number);
    case STRING:
      return fromUnits(content as Uint8Array);
    case BYTES:
      return (content as Uint8Array).slice().buffer;
    case ARRAY:
      return (content as Key[]).map(fromKey);
    default:
      return content as number;
  }
}

function toUnits(text: string): Uint8Array {
  const units = new DataView(new ArrayBuffer(text.length * 2));
  for (let i = 0; i < text.length; i++) units.setUint16(i * 2, text.charCodeAt(i));
  return new Uint8Array(units.buffer);
}

function fromUnits(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 2) {
    text += String.fromCharCode(((bytes[i] as number) << 8) | (bytes[i + 1] as number));
  }
  return text;
}
