/**
 * Turns bytes that `CborWriter` wrote back into the value (the format is in cbor-writer.ts).
 *
 * Invariant: any bytes give a value, a thrown `Malformed`, or `VARVE_VERSION` for a type that is unknown here. Nothing is read past the
 * end, no array is made longer than the bytes that are left, and nesting is bounded.
 *
 * Property names repeat from object to object, so their strings are kept in a small table found by length and bytes.
 */

import { bigintOf } from './bigints.ts';
import {
  ARRAY,
  BYTES,
  DEPTH_MAX,
  MAP,
  NINT,
  TAG,
  TAG_BIGINT,
  TAG_BIGINT_NEGATIVE,
  TAG_DATE,
  TAG_MAP,
  TAG_OBJECT,
  TAG_REFERENCE,
  TAG_SET,
  TAG_SHARED,
  TEXT,
  TYPED_ARRAY_TAGS,
  UINT,
} from './cbor-writer.ts';
import { newer } from './newer.ts';
import { readUtf8, strict } from './text.ts';

/** Thrown for bytes that are not a structured value. */
class Malformed extends Error {}

type TypedArrayConstructor = new (buffer: ArrayBuffer) => ArrayBufferView;
type ErrorConstructor = new (message: string) => Error;

const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);
const typedArrays = new Map<number, string>(Object.entries(TYPED_ARRAY_TAGS).map(([name, tag]) => [tag, name]));
const ERRORS: ReadonlyMap<string, ErrorConstructor> = new Map(
  [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((type) => [type.name, type]),
);
/** One level of a value has at most three: its container, its tag 28 and a name. */
const NESTING_MAX = 3 * DEPTH_MAX;
const NAME_SLOTS = 512;
const NAME_BYTES_MAX = 32;
const names = new Array<string>(NAME_SLOTS).fill('');

/** Reads values. One reader serves one value at a time. */
export class CborReader {
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  #end = 0;
  #depth = 0;
  /** Objects under tag 28, in the order of their tags. */
  #shared: unknown[] = [];
  /** Index of the tag 28 whose object is about to be made, or -1. */
  #sharing = -1;

  /** The value of `bytes[start..end]`. Throws `Malformed`, or `VARVE_VERSION`. */
  read(bytes: Uint8Array, start: number, end: number): unknown {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#depth = 0;
    this.#sharing = -1;
    if (this.#shared.length > 0) this.#shared = [];
    const value = this.#item();
    if (this.#at !== end) throw new Malformed('bytes are left over');
    return value;
  }

  #item(): unknown {
    const first = this.#byte();
    switch (first & 0xe0) {
      case UINT:
        return this.#count(first);
      case NINT:
        return -1 - this.#count(first);
      case BYTES: {
        const start = this.#take(this.#count(first));
        // Not `slice`: that of a Buffer, which a user's codec may pass on from zlib, is a Buffer over the same memory.
        return this.#keep(new Uint8Array(this.#bytes.subarray(start, this.#at)));
      }
      case TEXT: {
        const start = this.#take(this.#count(first));
        return this.#text(start);
      }
      case ARRAY:
        return this.#array(this.#count(first), this.#keep([]));
      case MAP:
        return this.#object(this.#count(first));
      case TAG:
        return this.#tagged(this.#count(first));
      default:
        return this.#simple(first);
    }
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new Malformed('the bytes end too early');
    return this.#bytes[this.#at++] as number;
  }

  /** Skips `length` bytes and returns their start. */
  #take(length: number): number {
    const start = this.#at;
    if (length > this.#end - start) throw new Malformed('the bytes end too early');
    this.#at = start + length;
    return start;
  }

  /** The text from `start` to here. Over HTTP anybody sends it: bytes that are no UTF-8 are refused, as in JSON, and not replaced. */
  #text(start: number): string {
    try {
      return readUtf8(this.#bytes, start, this.#at, strict);
    } catch {
      throw new Malformed('a text is no UTF-8');
    }
  }

  /** The argument of a head: its low five bits, or the bytes that they announce. */
  #count(first: number): number {
    const low = first & 0x1f;
    if (low < 24) return low;
    if (low > 27) throw new Malformed('a length is malformed');
    let count = 0;
    for (let width = 1 << (low - 24); width > 0; width--) count = count * 256 + this.#byte();
    if (count > Number.MAX_SAFE_INTEGER) throw new Malformed('an integer is out of range');
    return count;
  }

  #simple(first: number): unknown {
    switch (first) {
      case 0xf4:
        return false;
      case 0xf5:
        return true;
      case 0xf6:
        return null;
      case 0xf7:
        return undefined;
      case 0xfb: {
        const start = this.#take(8);
        for (let i = 0; i < 8; i++) doubleBytes[7 - i] = this.#bytes[start + i] as number;
        return double[0];
      }
      default:
        throw newer('a value');
    }
  }

  /** Remembers an object under tag 28, before its contents are read. */
  #keep<T>(value: T): T {
    if (this.#sharing >= 0) {
      this.#shared[this.#sharing] = value;
      this.#sharing = -1;
    }
    return value;
  }

  #enter(items: number): void {
    if (items > this.#end - this.#at) throw new Malformed('the bytes end too early');
    if (++this.#depth > NESTING_MAX) throw new Malformed('it nests too deep');
  }

  #array(length: number, into: unknown[]): unknown[] {
    this.#enter(length);
    for (let i = 0; i < length; i++) into.push(this.#item());
    this.#depth--;
    return into;
  }

  #object(length: number): object {
    const value: Record<string, unknown> = this.#keep({});
    this.#enter(length);
    for (let i = 0; i < length; i++) {
      const name = this.#name();
      const item = this.#item();
      // Plain assignment would set the prototype.
      if (name === '__proto__')
        Object.defineProperty(value, name, { value: item, enumerable: true, configurable: true, writable: true });
      else value[name] = item;
    }
    this.#depth--;
    return value;
  }

  #name(): string {
    const first = this.#bytes[this.#at] as number;
    const length = first - TEXT;
    // Short names: the length is in the head itself, or in one byte after it.
    const start = this.#at + (length < 24 ? 1 : 2);
    const size = length < 24 ? length : length === 24 ? (this.#bytes[this.#at + 1] as number) : -1;
    if (length < 0 || size <= 0 || size > NAME_BYTES_MAX || start + size > this.#end) return this.#string();
    const bytes = this.#bytes;
    const middle = bytes[start + (size >> 1)] as number;
    const slot =
      (size + (bytes[start] as number) * 3 + middle * 31 + (bytes[start + size - 1] as number) * 131) % NAME_SLOTS;
    const known = names[slot] as string;
    if (isSame(known, bytes, start, size)) {
      this.#at = start + size;
      return known;
    }
    const name = this.#string();
    if (name.length === size) names[slot] = name;
    return name;
  }

  #number(): number {
    const first = this.#byte();
    const major = first & 0xe0;
    if (major === UINT) return this.#count(first);
    if (major === NINT) return -1 - this.#count(first);
    const value = first === 0xfb ? this.#simple(first) : undefined;
    if (typeof value !== 'number') throw new Malformed('a time is no number');
    return value;
  }

  #string(): string {
    this.#enter(1);
    const text = this.#item();
    this.#depth--;
    if (typeof text !== 'string') throw new Malformed('a name is no string');
    return text;
  }

  #tagged(tag: number): unknown {
    switch (tag) {
      case TAG_SHARED:
        return this.#share();
      case TAG_REFERENCE: {
        const number = this.#count(this.#expect(UINT));
        if (number >= this.#shared.length) throw new Malformed('a reference leads nowhere');
        return this.#shared[number];
      }
      case TAG_DATE:
        return this.#keep(new Date(Math.round(this.#number() * 1000)));
      case TAG_BIGINT:
        return this.#bigint();
      case TAG_BIGINT_NEGATIVE:
        return -1n - this.#bigint();
      case TAG_SET: {
        const set = this.#keep(new Set<unknown>());
        const length = this.#count(this.#expect(ARRAY));
        this.#enter(length);
        for (let i = 0; i < length; i++) set.add(this.#item());
        this.#depth--;
        return set;
      }
      case TAG_MAP: {
        const map = this.#keep(new Map<unknown, unknown>());
        const length = this.#count(this.#expect(MAP));
        this.#enter(length);
        for (let i = 0; i < length; i++) map.set(this.#item(), this.#item());
        this.#depth--;
        return map;
      }
      case TAG_OBJECT:
        return this.#named();
      default:
        return this.#typedArray(tag);
    }
  }

  #share(): unknown {
    const index = this.#shared.length;
    this.#shared.push(undefined);
    this.#sharing = index;
    this.#enter(1);
    const value = this.#item();
    this.#depth--;
    if (this.#sharing === index) throw new Malformed('a shared item is no object');
    return value;
  }

  #expect(major: number): number {
    const first = this.#byte();
    if ((first & 0xe0) !== major) throw new Malformed('an item is of the wrong kind');
    return first;
  }

  #bigint(): bigint {
    const start = this.#take(this.#count(this.#expect(BYTES)));
    return bigintOf(this.#bytes, start, this.#at);
  }

  #buffer(): ArrayBuffer {
    const start = this.#take(this.#count(this.#expect(BYTES)));
    const copy = new Uint8Array(this.#at - start);
    copy.set(this.#bytes.subarray(start, this.#at));
    return copy.buffer;
  }

  #typedArray(tag: number): unknown {
    const name = typedArrays.get(tag);
    if (name === undefined) throw newer('a value');
    const types = globalThis as unknown as Record<string, TypedArrayConstructor | undefined>;
    const type = types[name];
    if (type === undefined) throw new Malformed(`${name} is missing here`);
    const buffer = this.#buffer();
    try {
      return this.#keep(new type(buffer));
    } catch {
      throw new Malformed('a typed array has a part of an element');
    }
  }

  #named(): unknown {
    const length = this.#count(this.#expect(ARRAY));
    const name = this.#string();
    if (length === 2) {
      if (name === 'ArrayBuffer') return this.#keep(this.#buffer());
      if (name === 'DataView') return this.#keep(new DataView(this.#buffer()));
      if (name === 'String') return utf16(new Uint16Array(this.#buffer()));
      if (name === 'Date') return this.#keep(new Date(this.#number()));
    }
    if (name === 'RegExp' && length === 3) {
      const source = this.#string();
      return this.#keep(new RegExp(source, this.#string()));
    }
    if (name === 'Blob' && length === 3) {
      const type = this.#string();
      return this.#keep(new Blob([this.#buffer()], { type }));
    }
    if (name === 'File' && length === 5) {
      const [type, title, lastModified] = [this.#string(), this.#string(), this.#number()];
      return this.#keep(new File([this.#buffer()], title, { type, lastModified }));
    }
    if (name === 'Error' && (length === 3 || length === 4)) return this.#error(length === 4);
    throw newer('a value');
  }

  #error(hasCause: boolean): Error {
    const name = this.#string();
    const message = this.#string();
    const error = this.#keep(new (ERRORS.get(name) ?? Error)(message));
    const hidden = { configurable: true, writable: true, enumerable: false };
    if (error.name !== name) Object.defineProperty(error, 'name', { value: name, ...hidden });
    // The place where the error was thrown is not stored; the place where it was read would mislead.
    Object.defineProperty(error, 'stack', { value: `${name}: ${message}`, ...hidden });
    if (hasCause) {
      this.#enter(1);
      Object.defineProperty(error, 'cause', { value: this.#item(), ...hidden });
      this.#depth--;
    }
    return error;
  }
}

function isSame(known: string, bytes: Uint8Array, start: number, size: number): boolean {
  if (known.length !== size) return false;
  for (let i = 0; i < size; i++) if (known.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}

function utf16(units: Uint16Array): string {
  let text = '';
  for (let i = 0; i < units.length; i += 4096) text += String.fromCharCode(...units.subarray(i, i + 4096));
  return text;
}
