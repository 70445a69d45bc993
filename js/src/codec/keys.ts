/**
 * Keys to bytes and back: a type byte, then content whose bytes sort as the keys do.
 *
 * Invariant: comparing encoded keys byte by byte gives the order of the keys, and equal bytes mean equal keys.
 *
 *   0x10 bytes     content                       inside an array, bytes and strings write 00 as 00 FF and end with
 *   0x20 string    UTF-8                         00 01; a nested array ends with 00; the rest know their length
 *   0x30 number    8 B: double, big-endian, sign bit flipped (negative: every bit flipped)
 *   0x40 bigint    sign 0 | 1, u16 big-endian length of the magnitude, magnitude (negative: both flipped)
 *   0x50 boolean   0 | 1
 *   0x60 Date      8 B: its time value as a number
 *   0x70 array     its elements
 *
 * 00 is below every type byte and 00 01 below 00 FF, so an array or string sorts before a longer one that begins with it.
 */

import type { Key } from '../types.ts';
import { magnitudeOf } from './bigints.ts';
import { byteCount, isBytes, timeOf } from './intrinsics.ts';
import { invalid, KEY_BYTES_MAX, plainKey, tooLong } from './plain-key.ts';
import { ReservedKey } from './reserved-key.ts';
import { isWellFormed, writeShortAscii, writeUtf8 } from './text.ts';

/** The first byte of a key's bytes. */
export const TYPE_BYTES = 0x10;
export const TYPE_STRING = 0x20;
export const TYPE_NUMBER = 0x30;
export const TYPE_BIGINT = 0x40;
export const TYPE_BOOLEAN = 0x50;
export const TYPE_DATE = 0x60;
export const TYPE_ARRAY = 0x70;
/** After 00: the end of a string or bytes inside an array. */
export const TERMINATOR = 0x01;
/** After 00: the 00 is content. */
export const ESCAPED = 0xff;

const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);
const scratch = new Uint8Array(KEY_BYTES_MAX + 1);

/**
 * Writes a plain key at `at` and returns the end, or -1 when `into` has no room for it. Grow it then and call again; with
 * `KEY_BYTES_MAX` bytes of room this never happens. Throws `VARVE_INVALID_KEY`.
 *
 * @example
 * const end = writeKey('apple', scratch, 0); // 6: the type byte and five letters
 */
export function writeKey(key: Key, into: Uint8Array, at: number): number {
  if (typeof key === 'string') {
    const end = writeShortAscii(key, into, at + 1);
    if (end >= 0 && end <= into.length) {
      into[at] = TYPE_STRING;
      return end;
    }
  }
  const end = put(key, into, at, 0);
  if (end >= 0 && end <= into.length && end - at <= KEY_BYTES_MAX) return end;
  // No room, or too long: to know which, encode it where a key of any legal length fits.
  if (into !== scratch && encodedLength(key) <= KEY_BYTES_MAX) return -1;
  throw tooLong();
}

/** The bytes of a key. Throws `VARVE_INVALID_KEY`. */
export function encodeKey(key: Key): Uint8Array {
  return encodePlain(plainKey(key));
}

/** The bytes of a plain key. Throws `VARVE_INVALID_KEY`. */
export function encodePlain(key: Key): Uint8Array {
  return scratch.slice(0, writeKey(key, scratch, 0));
}

function encodedLength(key: Key): number {
  return writeKey(key, scratch, 0);
}

/** Writes without checking the room. Bytes that do not fit are not written; the returned end shows it, or is -1 if it is unknown. */
function put(key: Key, into: Uint8Array, at: number, depth: number): number {
  switch (typeof key) {
    case 'string':
      into[at] = TYPE_STRING;
      return putString(key, into, at + 1, depth > 0);
    case 'number':
      into[at] = TYPE_NUMBER;
      return putNumber(key, into, at + 1);
    case 'boolean':
      into[at] = TYPE_BOOLEAN;
      into[at + 1] = key ? 1 : 0;
      return at + 2;
    case 'bigint':
      into[at] = TYPE_BIGINT;
      return putBigint(key, into, at + 1);
    case 'object':
      return putObject(key, into, at, depth);
    default:
      throw invalid(`A key cannot be ${key === undefined ? 'undefined' : `a ${typeof key}`}. ${ALLOWED}`);
  }
}

const ALLOWED = 'Use a string, number, bigint, boolean, Date, Uint8Array or an array of these.';

function putObject(key: Key & object, into: Uint8Array, at: number, depth: number): number {
  if (Array.isArray(key)) return putArray(key, into, at, depth);
  if (isBytes(key)) {
    into[at] = TYPE_BYTES;
    return putBytes(key, into, at + 1, depth > 0);
  }
  if (depth === 0 && ReservedKey.is(key)) return putBytes(key.bytes, into, at, false);
  const time = key === null ? undefined : timeOf(key);
  if (time === undefined) throw invalid(`A key cannot be ${key === null ? 'null' : 'an object'}. ${ALLOWED}`);
  if (Number.isNaN(time)) throw invalid('An invalid Date cannot be a key: it has no place in the order.');
  into[at] = TYPE_DATE;
  return putNumber(time, into, at + 1);
}

function putArray(key: readonly Key[], into: Uint8Array, at: number, depth: number): number {
  into[at] = TYPE_ARRAY;
  let end = at + 1;
  for (let i = 0; i < key.length && end >= 0; i++) end = put(key[i] as Key, into, end, depth + 1);
  if (end < 0 || depth === 0) return end;
  into[end] = 0;
  return end + 1;
}

function putString(key: string, into: Uint8Array, at: number, inside: boolean): number {
  let end = writeShortAscii(key, into, at);
  if (end < 0) {
    end = writeUtf8(key, into, at);
    if (end - at !== key.length && !isWellFormed(key)) {
      throw invalid('A key cannot have a lone surrogate: UTF-8 has no bytes for it.');
    }
  }
  return inside && end >= 0 ? terminate(into, at, end) : end;
}

function putBytes(key: Uint8Array, into: Uint8Array, at: number, inside: boolean): number {
  const count = byteCount(key);
  if (count < 0) throw invalid('Bytes cannot be a key once their buffer was detached, or shrank below them.');
  const end = at + count;
  if (end > into.length) return -1;
  into.set(key, at);
  return inside ? terminate(into, at, end) : end;
}

/** Escapes the zeros of content that was written without escapes, and adds the terminator. */
function terminate(into: Uint8Array, start: number, end: number): number {
  let zeros = 0;
  for (let i = start; i < end; i++) if (into[i] === 0) zeros++;
  let to = end + zeros;
  if (zeros > 0) {
    for (let from = end - 1, at = to - 1; at > from; from--) {
      const byte = into[from] as number;
      if (byte === 0) into[at--] = ESCAPED;
      into[at--] = byte;
    }
  }
  into[to++] = 0;
  into[to++] = TERMINATOR;
  return to;
}

function putNumber(key: number, into: Uint8Array, at: number): number {
  if (Number.isNaN(key)) throw invalid('NaN cannot be a key: it has no place in the order.');
  double[0] = key === 0 ? 0 : key;
  const sign = (doubleBytes[7] as number) >> 7;
  const flip = sign === 1 ? 0xff : 0;
  into[at] = (doubleBytes[7] as number) ^ (flip | 0x80);
  for (let i = 1; i < 8; i++) into[at + i] = (doubleBytes[7 - i] as number) ^ flip;
  return at + 8;
}

function putBigint(key: bigint, into: Uint8Array, at: number): number {
  const magnitude = magnitudeOf(key);
  const length = magnitude.length;
  if (length > 0xffff) return -1;
  const flip = key < 0n ? 0xff : 0;
  into[at] = key < 0n ? 0 : 1;
  into[at + 1] = (length >> 8) ^ flip;
  into[at + 2] = (length & 0xff) ^ flip;
  for (let i = 0; i < length; i++) into[at + 3 + i] = (magnitude[i] as number) ^ flip;
  return at + 3 + length;
}
