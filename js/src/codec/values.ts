/**
 * Values to stored bytes and back: one tag byte, then the payload.
 *
 *   0 raw bytes (a Uint8Array)   1 structured (cbor-writer.ts)   2 string, UTF-8   3 JSON, UTF-8   4 a codec of the user
 *
 * Invariant: the tag decides how the rest is read, so reading a value with another codec gives `VARVE_INVALID_VALUE`, never a
 * misread value. Only codecs of users share a tag: they tell their values apart themselves. A higher tag gives `VARVE_VERSION`.
 *
 * Why structured values are encoded here and not by a library (gzip; encode + decode of a 280-byte document in Node, where
 * this codec takes 4.3 KB and 1.4 + 1.5 us): msgpackr without eval 13.3 KB, 2.5 + 2.2 us, but -0 becomes 0, a `__proto__`
 * key is renamed, class instances lose their class and lone surrogates their value without an error, and it has a native
 * addon; cborg/extended 9.0 KB, 8.8 + 14.1 us, no cycles, no DataView; @msgpack/msgpack 5.9 KB, 4.8 + 5.1 us, no bigint,
 * Map, Set, undefined or cycles. Each would also need a walk of our own, to name the path of a refused part. The output is
 * plain CBOR.
 */

import { VarveError } from '../errors.ts';
import type { BuiltInCodec, ValueCodec } from '../types.ts';
import { CborReader } from './cbor-reader.ts';
import { CborWriter } from './cbor-writer.ts';
import { byteCount, isBytes } from './intrinsics.ts';
import { newer } from './newer.ts';
import { ByteSink } from './sink.ts';
import { isWellFormed, readUtf8, writeShortAscii, writeUtf8 } from './text.ts';

/** Most bytes of an encoded value (crates/varve/src/types.rs has the reason). */
export const VALUE_BYTES_MAX = 2 ** 27;

const RAW = 0;
const STRUCTURED = 1;
const TEXT = 2;
const JSON_TEXT = 3;
const CUSTOM = 4;

/** How a store writes and reads values: a codec with its tag byte, working in place. */
export interface ValueFormat<V> extends ValueCodec<V> {
  /** Appends the tag byte and the payload. Throws `VARVE_INVALID_VALUE`; the sink then ends where it did before. */
  write(value: V, sink: ByteSink): void;
  /** The value of stored bytes, tag byte included. A Uint8Array is a view of `bytes`. */
  read(bytes: Uint8Array, start: number, end: number): V;
}

const scratch = new ByteSink(1024);
const cborWriter = new CborWriter(scratch);
const cborReader = new CborReader();

/** A codec that comes with Varve. Its `encode` returns the bytes as they are stored, tag byte first. */
abstract class OwnCodec<V> implements ValueFormat<V>, BuiltInCodec<V> {
  abstract readonly name: string;
  abstract write(value: V, sink: ByteSink): void;
  abstract read(bytes: Uint8Array, start: number, end: number): V;

  as<T extends V>(): ValueCodec<T> {
    return this as unknown as ValueCodec<T>;
  }

  encode(value: V): Uint8Array {
    const sink = new ByteSink(64);
    this.write(value, sink);
    return sink.copy();
  }

  decode(bytes: Uint8Array): V {
    return this.read(bytes, 0, bytes.length);
  }
}

class StructuredCodec extends OwnCodec<unknown> {
  readonly name = 'structured';

  write(value: unknown, sink: ByteSink): void {
    if (value === undefined)
      throw invalid('The value cannot be stored: it is undefined. Store null, or delete the key.');
    if (typeof value === 'string' && isWellFormed(value)) return writeText(TEXT, value, sink);
    if (isBytes(value)) return writeBytes(RAW, value, sink);
    sink.byte(STRUCTURED);
    try {
      cborWriter.write(value, sink);
    } catch (error) {
      sink.at--;
      throw error;
    }
  }

  read(bytes: Uint8Array, start: number, end: number): unknown {
    switch (start < end ? bytes[start] : -1) {
      case RAW:
        return viewOf(bytes, start + 1, end);
      case TEXT:
        return readUtf8(bytes, start + 1, end);
      case STRUCTURED:
        return decoded(this.name, () => cborReader.read(bytes, start + 1, end));
      default:
        throw foreign(this.name, bytes, start, end);
    }
  }
}

class BytesCodec extends OwnCodec<Uint8Array> {
  readonly name = 'bytes';

  write(value: Uint8Array, sink: ByteSink): void {
    if (!isBytes(value)) throw invalid('The value is no Uint8Array. The bytes codec stores nothing else.');
    writeBytes(RAW, value, sink);
  }

  read(bytes: Uint8Array, start: number, end: number): Uint8Array {
    if (start >= end || bytes[start] !== RAW) throw foreign(this.name, bytes, start, end);
    return viewOf(bytes, start + 1, end);
  }
}

class Utf8Codec extends OwnCodec<string> {
  readonly name = 'utf8';

  write(value: string, sink: ByteSink): void {
    if (typeof value !== 'string') throw invalid('The value is no string. The utf8 codec stores nothing else.');
    if (!isWellFormed(value)) throw invalid('The value has a lone surrogate, for which UTF-8 has no bytes.');
    writeText(TEXT, value, sink);
  }

  read(bytes: Uint8Array, start: number, end: number): string {
    if (start >= end || bytes[start] !== TEXT) throw foreign(this.name, bytes, start, end);
    return readUtf8(bytes, start + 1, end);
  }
}

class JsonCodec extends OwnCodec<unknown> {
  readonly name = 'json';

  write(value: unknown, sink: ByteSink): void {
    let text: string | undefined;
    try {
      text = JSON.stringify(value);
    } catch (error) {
      throw invalid('The value cannot be stored: JSON cannot express it.', error);
    }
    if (text === undefined) throw invalid(`The value cannot be stored: JSON has no form for ${typeof value}.`);
    writeText(JSON_TEXT, text, sink);
  }

  read(bytes: Uint8Array, start: number, end: number): unknown {
    if (start >= end || bytes[start] !== JSON_TEXT) throw foreign(this.name, bytes, start, end);
    return decoded(this.name, () => JSON.parse(readUtf8(bytes, start + 1, end)));
  }
}

/**
 * The default codec: primitives, Date, RegExp, Map, Set, Error (name, message, cause), ArrayBuffer, typed arrays, DataView, Blob, File,
 * plain objects and arrays, with identity and cycles kept inside one value. A Uint8Array and a string are stored as they are. The bytes
 * of a Blob are read after the call, so only the calls of asynchronous stores take Blobs; `encode` and `varve/synchronous` refuse them.
 * Functions, symbols, class instances, other platform objects and `undefined` itself give `VARVE_INVALID_VALUE`. So do objects that change
 * while they are written, and bytes whose buffer was detached. Each part is read once. For a getter, the returned value is stored; for a
 * proxy of an object or an array, the values that the proxy returns.
 */
export const structured: BuiltInCodec<unknown> = new StructuredCodec();
/** Uint8Array only, stored as it is. Reads return a view of a larger buffer: `slice()` it if you keep or transfer it. */
export const bytes: BuiltInCodec<Uint8Array> = new BytesCodec();
/** Strings only, stored as UTF-8. */
export const utf8: BuiltInCodec<string> = new Utf8Codec();
/** Values as the JSON text that `JSON.stringify` returns. */
export const json: BuiltInCodec<unknown> = new JsonCodec();

/** The format of a codec: a built-in codec itself, or any other codec with the tag byte for codecs of users. */
export function formatOf<V>(codec: ValueCodec<V>): ValueFormat<V> {
  if (codec instanceof OwnCodec) return codec as ValueFormat<V>;
  const { name } = codec;
  const write = (value: V, sink: ByteSink): void => {
    let encoded: Uint8Array;
    try {
      encoded = codec.encode(value);
    } catch (error) {
      throw error instanceof VarveError
        ? error
        : invalid(`The value cannot be stored: the codec ${name} refused it.`, error);
    }
    if (!isBytes(encoded)) throw invalid(`The codec ${name} encoded a value to something that is no Uint8Array.`);
    writeBytes(CUSTOM, encoded, sink);
  };
  const read = (bytes: Uint8Array, start: number, end: number): V => {
    if (start >= end || bytes[start] !== CUSTOM) throw foreign(name, bytes, start, end);
    return decoded(name, () => codec.decode(bytes.subarray(start + 1, end)));
  };
  return { name, encode: (value) => codec.encode(value), decode: (bytes) => codec.decode(bytes), write, read };
}

/** Refuses a value that has too many bytes. */
export function checkLength(bytes: number): void {
  if (bytes > VALUE_BYTES_MAX)
    throw invalid('A value takes at most 128 MiB; this one is longer. Split it over several keys.');
}

/** The length of a value of bytes. Throws `VARVE_INVALID_VALUE` for bytes that cannot be stored. */
export function checkedBytes(value: Uint8Array): number {
  const count = byteCount(value);
  if (count < 0)
    throw invalid('The value cannot be stored: the buffer of its bytes was detached, or shrank below them.');
  checkLength(count + 1);
  return count;
}

function writeBytes(tag: number, value: Uint8Array, sink: ByteSink): void {
  const length = checkedBytes(value);
  sink.reserve(length + 1);
  sink.bytes[sink.at] = tag;
  sink.bytes.set(value, sink.at + 1);
  sink.at += length + 1;
}

/** `bytes.subarray(start, end)`, a little faster: `subarray` looks up the class of the new view. */
function viewOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
}

function writeText(tag: number, text: string, sink: ByteSink): void {
  sink.reserve(3 * text.length + 1);
  const start = sink.at + 1;
  const end = writeShortAscii(text, sink.bytes, start);
  sink.bytes[sink.at] = tag;
  sink.at = end >= 0 ? end : writeUtf8(text, sink.bytes, start);
}

function decoded<T>(codec: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof VarveError) throw error;
    throw invalid(`A stored value cannot be read by the codec ${codec}. Was it written by another one?`, error);
  }
}

/** The error for a value whose tag is not the codec's. */
function foreign(codec: string, bytes: Uint8Array, start: number, end: number): VarveError {
  if (start < end && (bytes[start] as number) > CUSTOM) return newer('a value');
  return invalid(`A stored value is of another codec than ${codec}: open the store with that codec.`);
}

function invalid(message: string, cause?: unknown): VarveError {
  return new VarveError('VARVE_INVALID_VALUE', message, cause === undefined ? undefined : { cause });
}
