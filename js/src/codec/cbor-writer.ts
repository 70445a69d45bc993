/**
 * Structured values to bytes: CBOR (RFC 8949) with registered tags, so that other tools can read what is stored.
 *
 * Invariant: for every value that `write` accepts, `CborReader` returns an equal value (prototypes of plain data, identity inside the
 * value and cycles included). Every other value is refused with a path, never changed silently. Only what an object has beside the content
 * of its type is left out: subclasses, symbols, and named properties of arrays, which take as long to find as the array takes to write.
 *
 *   number        integer, or a double when fractional, -0, NaN or infinite         bigint      tags 2 and 3
 *   string        text; with lone surrogates 27 ["String", UTF-16 units]             Date        tag 1, seconds
 *   undefined     f7 (inside the value only; holes of arrays become undefined)       RegExp      27 ["RegExp", source, flags]
 *   Map, Set      tags 259 and 258                                                   Error       27 ["Error", name, message, cause?]
 *   Blob, File    27 ["Blob", type, bytes] and 27 ["File", type, name, lastModified, bytes]
 *   Uint8Array    bytes; other typed arrays tags 64..87 (RFC 8746)                   ArrayBuffer, DataView   27 [name, bytes]
 *   an object met twice: tag 28 where it first stands, tag 29 with its number afterwards
 *
 * Typed arrays are stored as the platform has them; every platform with WebAssembly is little-endian.
 *
 * Each part is read once, and its type and contents are read with functions of the platform (intrinsics.ts). So getters, subclasses
 * and proxies cannot cause bytes that do not read back. Shared objects are known only at the end: the tags are inserted then.
 */

import { hasCode, VarveError } from '../errors.ts';
import { magnitudeOf } from './bigints.ts';
import { bytesUnder, getter, timeOf, typedArrayName } from './intrinsics.ts';
import type { ByteSink } from './sink.ts';
import { isWellFormed, writeShortAscii, writeUtf8 } from './text.ts';

/** Most levels of containers in a value. */
export const DEPTH_MAX = 1000;

/** Major types, in the upper three bits. */
export const UINT = 0x00;
export const NINT = 0x20;
export const BYTES = 0x40;
export const TEXT = 0x60;
export const ARRAY = 0x80;
export const MAP = 0xa0;
export const TAG = 0xc0;
/** Tag numbers. */
export const TAG_DATE = 1;
export const TAG_BIGINT = 2;
export const TAG_BIGINT_NEGATIVE = 3;
export const TAG_OBJECT = 27;
export const TAG_SHARED = 28;
export const TAG_REFERENCE = 29;
export const TAG_SET = 258;
export const TAG_MAP = 259;
/** RFC 8746: typed arrays by name, little-endian. */
export const TYPED_ARRAY_TAGS: Readonly<Record<string, number>> = {
  Uint8ClampedArray: 68,
  Uint16Array: 69,
  Uint32Array: 70,
  BigUint64Array: 71,
  Int8Array: 72,
  Int16Array: 77,
  Int32Array: 78,
  BigInt64Array: 79,
  Float16Array: 84,
  Float32Array: 85,
  Float64Array: 86,
};

const CHANGED = 'changed while it was being written';
/** Most items of an array: each takes at least one byte. */
const ITEMS_MAX = 2 ** 30;

const mapSize = getter<number>(Map.prototype, 'size');
const setSize = getter<number>(Set.prototype, 'size');
const bufferSize = getter<number>(ArrayBuffer.prototype, 'byteLength');
const sourceOf = getter<string>(RegExp.prototype, 'source');
const { entries } = Map.prototype;
const { values } = Set.prototype;

const blobSize = typeof Blob === 'function' ? getter<number>(Blob.prototype, 'size') : undefined;
const BLOB_ADVICE =
  'This call cannot wait for its bytes. Store { bytes: await blob.arrayBuffer(), type: blob.type, name: blob.name }.';

const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);

/** Why a value cannot be stored, and the path to the part that causes it, innermost step first. */
class Refusal {
  readonly steps: string[] = [];
  constructor(
    readonly what: string,
    readonly advice = 'Store plain data, or use a codec for it.',
  ) {}

  at(step: string): this {
    this.steps.push(step);
    return this;
  }

  toError(cause: unknown): VarveError {
    const path = `value${this.steps.reverse().join('')}`;
    const message = `The value cannot be stored: ${path} is ${this.what}. ${this.advice}`;
    return new VarveError('VARVE_INVALID_VALUE', message, { cause });
  }
}

/** Writes values into a sink. One writer serves one value at a time. */
export class CborWriter {
  #sink: ByteSink;
  /** Objects that were met, and the position of each. */
  readonly #met = new Map<object, number>();
  /** The places where an object was met again, and the position of that object, in the order of writing. No bytes are there yet. */
  #again: { readonly at: number; readonly stands: number }[] = [];
  #depth = 0;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** Appends the value to the sink. Throws `VARVE_INVALID_VALUE`; the sink then ends where it did before. */
  write(value: unknown, sink: ByteSink): void {
    // A getter of the value being written may write another value.
    if (this.#depth > 0) return new CborWriter(sink).write(value, sink);
    this.#sink = sink;
    const start = sink.at;
    try {
      this.#item(value);
      if (this.#again.length > 0) this.#share(start);
    } catch (error) {
      sink.rewind(start);
      if (error instanceof Refusal) throw error.toError(undefined);
      // The sink refuses a value that is too long.
      if (hasCode(error, 'VARVE_INVALID_VALUE')) throw error;
      throw new Refusal('not readable: a getter or a proxy threw, or it is not what it pretends to be').toError(error);
    } finally {
      this.#met.clear();
      if (this.#again.length > 0) this.#again = [];
      this.#depth = 0;
    }
  }

  /** Inserts tag 28 at objects that were met again, and tag 29 at the places where they were met again. */
  #share(start: number): void {
    const sink = this.#sink;
    const places = [...new Set(this.#again.map(({ stands }) => stands))].sort((a, b) => a - b);
    const numbers = new Map(places.map((at, number) => [at, number]));
    // At one place references come first: they took no bytes, so the object at that place was met after them.
    const marks = [...this.#again, ...places.map((at) => ({ at, stands: -1 }))].sort((a, b) => a.at - b.at);
    const written = sink.copy(start);
    const moved: (readonly [from: number, by: number])[] = [];
    let from = start;
    sink.at = start;
    for (const { at, stands } of marks) {
      sink.append(written.subarray(from - start, at - start));
      from = at;
      const number = numbers.get(stands);
      this.#head(TAG, number === undefined ? TAG_SHARED : TAG_REFERENCE);
      if (number !== undefined) this.#head(UINT, number);
      moved.push([at, sink.at - at]);
    }
    sink.append(written.subarray(from - start));
    sink.blobs = sink.blobs?.map(({ at, blob }) => ({
      at: at + (moved.findLast(([after]) => after <= at)?.[1] ?? 0),
      blob,
    }));
  }

  #item(value: unknown): void {
    switch (typeof value) {
      case 'string':
        return this.#text(value);
      case 'number':
        return this.#number(value);
      case 'boolean':
        return this.#sink.byte(value ? 0xf5 : 0xf4);
      case 'undefined':
        return this.#sink.byte(0xf7);
      case 'bigint':
        this.#head(TAG, value < 0n ? TAG_BIGINT_NEGATIVE : TAG_BIGINT);
        // CBOR counts negative bigints from -1.
        return this.#bytes(magnitudeOf(value < 0n ? -1n - value : value));
      case 'object':
        return value === null ? this.#sink.byte(0xf6) : this.#object(value);
      default:
        throw new Refusal(`a ${typeof value}`);
    }
  }

  #head(major: number, count: number): void {
    const sink = this.#sink;
    sink.reserve(9);
    const { bytes, at } = sink;
    if (count < 24) {
      bytes[at] = major | count;
      sink.at = at + 1;
    } else if (count < 0x100) {
      bytes[at] = major | 24;
      bytes[at + 1] = count;
      sink.at = at + 2;
    } else if (count < 0x1_0000) {
      bytes[at] = major | 25;
      bytes[at + 1] = count >> 8;
      bytes[at + 2] = count;
      sink.at = at + 3;
    } else {
      const wide = count > 0xffff_ffff;
      bytes[at] = major | (wide ? 27 : 26);
      sink.at = at + 1;
      if (wide) this.#u32(Math.floor(count / 0x1_0000_0000));
      this.#u32(count % 0x1_0000_0000);
    }
  }

  /** Writes four bytes, most significant first; the room must be reserved already. */
  #u32(value: number): void {
    const { bytes, at } = this.#sink;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
    this.#sink.at = at + 4;
  }

  #number(value: number): void {
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
      return value < 0 ? this.#head(NINT, -1 - value) : this.#head(UINT, value);
    }
    const sink = this.#sink;
    sink.reserve(9);
    double[0] = value;
    sink.bytes[sink.at] = 0xfb;
    for (let i = 0; i < 8; i++) sink.bytes[sink.at + 1 + i] = doubleBytes[7 - i] as number;
    sink.at += 9;
  }

  #text(text: string): void {
    const sink = this.#sink;
    const length = text.length;
    sink.reserve(3 * length + 5);
    if (length < 24) {
      const end = writeShortAscii(text, sink.bytes, sink.at + 1);
      if (end >= 0) {
        sink.bytes[sink.at] = TEXT | length;
        sink.at = end;
        return;
      }
    }
    // The head is as wide as the longest encoding may need; the length is known after the text is written.
    const width = 3 * length < 0x100 ? 1 : 3 * length < 0x1_0000 ? 2 : 4;
    const start = sink.at + 1 + width;
    let end = writeShortAscii(text, sink.bytes, start);
    if (end < 0) end = writeUtf8(text, sink.bytes, start);
    const count = end - start;
    if (count !== length && !isWellFormed(text)) return this.#utf16(text);
    sink.bytes[sink.at++] = TEXT | (width === 1 ? 24 : width === 2 ? 25 : 26);
    if (width === 4) this.#u32(count);
    else if (width === 2) sink.bytes[sink.at] = count >> 8;
    sink.bytes[start - 1] = count;
    sink.at = end;
  }

  #utf16(text: string): void {
    const units = new Uint16Array(text.length);
    for (let i = 0; i < text.length; i++) units[i] = text.charCodeAt(i);
    this.#named('String', 2);
    this.#bytes(new Uint8Array(units.buffer));
  }

  #bytes(bytes: Uint8Array): void {
    this.#head(BYTES, bytes.length);
    this.#sink.append(bytes);
  }

  /** Tag 27: an array with the name of a type, and the values from which it is made again. */
  #named(name: string, count: number): void {
    this.#head(TAG, TAG_OBJECT);
    this.#head(ARRAY, count);
    this.#text(name);
  }

  #object(value: object): void {
    const { at } = this.#sink;
    const stands = this.#met.get(value);
    if (stands !== undefined) {
      this.#again.push({ at, stands });
      return;
    }
    this.#met.set(value, at);
    if (++this.#depth > DEPTH_MAX) throw new Refusal(`nested more than ${DEPTH_MAX} deep`);
    if (Array.isArray(value)) this.#array(value);
    else if (isPlain(value)) this.#plain(value);
    else this.#special(value);
    this.#depth--;
  }

  #array(value: readonly unknown[]): void {
    // A proxy may return anything.
    const length = value.length;
    if (!Number.isInteger(length) || length < 0 || length > ITEMS_MAX)
      throw new Refusal(`an array of ${String(length)} items`);
    this.#head(ARRAY, length);
    let i = 0;
    try {
      for (; i < length; i++) this.#item(value[i]);
    } catch (error) {
      throw error instanceof Refusal ? error.at(`[${i}]`) : error;
    }
    if (value.length !== length) throw new Refusal(CHANGED);
  }

  #plain(value: Readonly<Record<string, unknown>>): void {
    const names = Object.keys(value);
    this.#head(MAP, names.length);
    let name = '';
    try {
      for (name of names) {
        this.#text(name);
        const item = value[name];
        if (item === undefined && !Object.hasOwn(value, name)) throw new Refusal(CHANGED);
        this.#item(item);
      }
    } catch (error) {
      throw error instanceof Refusal ? error.at(step(name)) : error;
    }
  }

  #special(value: object): void {
    if (ArrayBuffer.isView(value)) return this.#view(value);
    // A first guess only: each case continues with a function that works only for real objects of that type.
    const type = Object.prototype.toString.call(value).slice(8, -1);
    if (value instanceof Error || (type === 'Error' && !(Symbol.toStringTag in value)))
      return this.#error(value as Error);
    switch (type) {
      case 'Date':
        return this.#date(timeOf(value));
      case 'Map':
        return this.#map(value as ReadonlyMap<unknown, unknown>);
      case 'Set':
        return this.#set(value as ReadonlySet<unknown>);
      case 'RegExp':
        return this.#regExp(value as RegExp);
      case 'ArrayBuffer':
        this.#named(type, 2);
        // Throws unless it is one.
        bufferSize.call(value);
        return this.#bytes(new Uint8Array(value as ArrayBuffer));
      case 'Blob':
      case 'File':
        return this.#blob(value as File, type);
      default:
        throw new Refusal(nameOf(value));
    }
  }

  #blob(value: File, type: 'Blob' | 'File'): void {
    const sink = this.#sink;
    // Throws unless it is one.
    const size = blobSize?.call(value) ?? 0;
    if (sink.blobs === undefined) throw new Refusal(`a ${type}`, BLOB_ADVICE);
    this.#named(type, type === 'File' ? 5 : 3);
    this.#text(String(value.type));
    if (type === 'File') {
      this.#text(String(value.name));
      this.#number(Number(value.lastModified));
    }
    this.#head(BYTES, size);
    sink.blob(value, size);
  }

  #view(value: ArrayBufferView): void {
    const bytes = bytesUnder(value);
    if (bytes === undefined) throw new Refusal('of a buffer that was detached, or shrank below it');
    const type = typedArrayName(value) ?? 'DataView';
    const tag = TYPED_ARRAY_TAGS[type];
    if (tag !== undefined) this.#head(TAG, tag);
    else if (type === 'DataView') this.#named(type, 2);
    else if (type !== 'Uint8Array') throw new Refusal(`a ${type}`);
    this.#bytes(bytes);
  }

  #regExp(value: RegExp): void {
    // Throws unless it is one. The constructor then copies its source and flags.
    sourceOf.call(value);
    const { source, flags } = new RegExp(value);
    this.#named('RegExp', 3);
    this.#text(source);
    this.#text(flags);
  }

  #date(time: number | undefined): void {
    if (time === undefined) throw new Refusal('no real Date');
    const seconds = time / 1000;
    // Past the year 73,000 seconds are too coarse for some milliseconds.
    if (Number.isNaN(time) || Math.round(seconds * 1000) === time) this.#head(TAG, TAG_DATE);
    else this.#named('Date', 2);
    this.#number(Math.round(seconds * 1000) === time ? seconds : time);
  }

  #map(value: ReadonlyMap<unknown, unknown>): void {
    this.#head(TAG, TAG_MAP);
    const size = mapSize.call(value);
    this.#head(MAP, size);
    let i = 0;
    try {
      for (const [key, item] of entries.call(value)) {
        if (i === size) break;
        this.#item(key);
        this.#item(item);
        i++;
      }
    } catch (error) {
      throw error instanceof Refusal ? error.at(`.entries()[${i}]`) : error;
    }
    if (i !== size || mapSize.call(value) !== size) throw new Refusal(CHANGED);
  }

  #set(value: ReadonlySet<unknown>): void {
    this.#head(TAG, TAG_SET);
    const size = setSize.call(value);
    this.#head(ARRAY, size);
    let i = 0;
    try {
      for (const item of values.call(value)) {
        if (i === size) break;
        this.#item(item);
        i++;
      }
    } catch (error) {
      throw error instanceof Refusal ? error.at(`.values()[${i}]`) : error;
    }
    if (i !== size || setSize.call(value) !== size) throw new Refusal(CHANGED);
  }

  #error(value: Error): void {
    const hasCause = Object.hasOwn(value, 'cause');
    this.#named('Error', hasCause ? 4 : 3);
    this.#text(String(value.name));
    this.#text(String(value.message));
    if (!hasCause) return;
    try {
      this.#item(value.cause);
    } catch (error) {
      throw error instanceof Refusal ? error.at('.cause') : error;
    }
  }
}

/** True for `{}` and `Object.create(null)`, also of another realm (whose Object.prototype has no prototype either). */
function isPlain(value: object): value is Record<string, unknown> {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null)
    return !(Symbol.toStringTag in value) && !ArrayBuffer.isView(value);
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf');
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'an object of an unknown class';
}

function step(name: string): string {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
