/**
 * Turns key bytes back into keys (the format is in keys.ts), one at a time and a scan batch at a time.
 *
 * Invariant: bytes that are not the encoding of a key give `VARVE_CORRUPT`, never another key. An unknown type byte gives `VARVE_VERSION`.
 */

import { VarveError } from '../errors.ts';
import type { Key } from '../types.ts';
import { bigintOf } from './bigints.ts';
import {
  ESCAPED,
  TERMINATOR,
  TYPE_ARRAY,
  TYPE_BIGINT,
  TYPE_BOOLEAN,
  TYPE_BYTES,
  TYPE_DATE,
  TYPE_NUMBER,
  TYPE_STRING,
} from './keys.ts';
import { newer } from './newer.ts';
import { KEY_DEPTH_MAX } from './plain-key.ts';
import { readUtf8, strict } from './text.ts';

const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);

/** The key of `bytes[start..end]`. A Uint8Array key is a copy. */
export function decodeKey(bytes: Uint8Array, start = 0, end: number = bytes.length): Key {
  if (start >= end) throw corrupt();
  // The two kinds whose content runs to the end of the key; inside arrays they are terminated instead.
  if (bytes[start] === TYPE_STRING) return textOf(bytes, start + 1, end);
  if (bytes[start] === TYPE_BYTES) return bytes.slice(start + 1, end);
  const reader = new KeyReader(bytes, start, end);
  const key = reader.key(0);
  if (reader.at !== end) throw corrupt();
  return key;
}

/** Up to this many keys are decoded one by one: this is cheaper than decoding the text of all together. */
const KEYS_FEW = 2;

/**
 * The keys of a scan batch: key `i` is `blob[ends[i - 1]..ends[i]]`. A batch of ASCII strings costs one decoding of the
 * whole blob and a slice of it for each key.
 */
export function decodeKeys(blob: Uint8Array, ends: ArrayLike<number>): Key[] {
  const keys = new Array<Key>(ends.length);
  const text = ends.length > KEYS_FEW && allStrings(blob, ends) ? textOf(blob, 0, blob.length) : '';
  let start = 0;
  // If there are as many chars as bytes, each char took one byte.
  const ascii = text.length === blob.length;
  for (let i = 0; i < ends.length; i++) {
    const end = ends[i] as number;
    keys[i] = ascii ? text.slice(start + 1, end) : decodeKey(blob, start, end);
    start = end;
  }
  return keys;
}

function allStrings(blob: Uint8Array, ends: ArrayLike<number>): boolean {
  let start = 0;
  for (let i = 0; i < ends.length; i++) {
    if (blob[start] !== TYPE_STRING) return false;
    start = ends[i] as number;
  }
  return start === blob.length && start > 0;
}

class KeyReader {
  constructor(
    readonly bytes: Uint8Array,
    public at: number,
    readonly end: number,
  ) {}

  key(depth: number): Key {
    switch (this.#byte()) {
      case TYPE_STRING:
        return this.#terminated(textOf);
      case TYPE_BYTES:
        return this.#terminated((bytes, start, end) => bytes.slice(start, end));
      case TYPE_NUMBER:
        return this.#number();
      case TYPE_DATE:
        return this.#date();
      case TYPE_BOOLEAN: {
        const value = this.#byte();
        if (value > 1) throw corrupt();
        return value === 1;
      }
      case TYPE_BIGINT:
        return this.#bigint();
      case TYPE_ARRAY:
        return this.#array(depth);
      default:
        throw newer('a key');
    }
  }

  #byte(): number {
    if (this.at >= this.end) throw corrupt();
    return this.bytes[this.at++] as number;
  }

  #array(depth: number): Key {
    if (depth >= KEY_DEPTH_MAX) throw corrupt();
    const keys: Key[] = [];
    for (;;) {
      if (this.at >= this.end) {
        if (depth > 0) throw corrupt();
        return keys;
      }
      if (this.bytes[this.at] === 0) {
        if (depth === 0) throw corrupt();
        this.at++;
        return keys;
      }
      keys.push(this.key(depth + 1));
    }
  }

  /** Reads content up to 00 01, and calls `of` with the content without its escapes. */
  #terminated<T>(of: (bytes: Uint8Array, start: number, end: number) => T): T {
    const { bytes, at: start } = this;
    let escapes = 0;
    for (;;) {
      if (this.#byte() !== 0) continue;
      const next = this.#byte();
      if (next === TERMINATOR) break;
      if (next !== ESCAPED) throw corrupt();
      escapes++;
    }
    const end = this.at - 2;
    if (escapes === 0) return of(bytes, start, end);
    const content = new Uint8Array(end - start - escapes);
    for (let from = start, to = 0; from < end; from++, to++) {
      const byte = bytes[from] as number;
      content[to] = byte;
      if (byte === 0) from++;
    }
    return of(content, 0, content.length);
  }

  #number(): number {
    const first = this.#byte();
    const flip = first < 0x80 ? 0xff : 0;
    doubleBytes[7] = first ^ (flip | 0x80);
    for (let i = 6; i >= 0; i--) doubleBytes[i] = this.#byte() ^ flip;
    const value = double[0] as number;
    if (Number.isNaN(value) || Object.is(value, -0)) throw corrupt();
    return value;
  }

  #date(): Date {
    const time = this.#number();
    const date = new Date(time);
    // A Date accepts only whole milliseconds in a limited range.
    if (date.getTime() !== time) throw corrupt();
    return date;
  }

  #bigint(): bigint {
    const sign = this.#byte();
    if (sign > 1) throw corrupt();
    const flip = sign === 0 ? 0xff : 0;
    const length = ((this.#byte() ^ flip) << 8) | (this.#byte() ^ flip);
    const start = this.at;
    if (length > this.end - start || (length > 0 && this.bytes[start] === flip)) throw corrupt();
    if (length === 0 && sign === 0) throw corrupt();
    this.at = start + length;
    const magnitude = bigintOf(this.bytes, start, this.at, flip);
    return sign === 0 ? -magnitude : magnitude;
  }
}

/** The text in a key. Bytes that are no UTF-8 would become another text, and a key of that text has other bytes: nothing would find it. */
function textOf(bytes: Uint8Array, start: number, end: number): string {
  try {
    return readUtf8(bytes, start, end, strict);
  } catch {
    throw corrupt();
  }
}

function corrupt(): VarveError {
  return new VarveError('VARVE_CORRUPT', 'The store is damaged: the bytes of a key are no key.');
}
