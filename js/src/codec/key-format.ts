/**
 * How a store writes and reads its keys: the key codec of the user, if any, over the bytes of keys.ts.
 *
 * Invariant: the order of the store is the order of the Varve keys that the codec returns.
 */

import { VarveError } from '../errors.ts';
import type { Key, KeyCodec } from '../types.ts';
import { decodeKey, decodeKeys } from './key-reader.ts';
import { encodeKey, writeKey } from './keys.ts';
import { KEY_BYTES_MAX, plainKey } from './plain-key.ts';
import type { ByteSink } from './sink.ts';

/** Turns keys of one store into bytes and back. */
export interface KeyFormat<K> {
  /** Appends the bytes of a key. Throws `VARVE_INVALID_KEY`. Code of the user runs before the sink is used. */
  write(key: K, sink: ByteSink): void;
  /** The bytes of a key. Throws `VARVE_INVALID_KEY`. */
  encode(key: K): Uint8Array;
  /** The plain key, for code that needs the key more than once: it is the same each time. */
  plain(key: K): K;
  read(bytes: Uint8Array, start: number, end: number): K;
  /** The keys of a scan batch; key `i` ends at `ends[i]`. */
  readAll(blob: Uint8Array, ends: ArrayLike<number>): K[];
}

/** The format of a key codec, or of plain Varve keys. */
export function keyFormatOf<K>(codec: KeyCodec<K> | undefined): KeyFormat<K> {
  // Without a codec a store's keys are Varve keys: K is Key or a part of it.
  if (codec === undefined) {
    const plain = { write: appendKey, encode: encodeKey, plain: plainKey, read: decodeKey, readAll: decodeKeys };
    return plain as unknown as KeyFormat<K>;
  }
  return {
    write: (key, sink) => appendKey(mappedKey(codec, key), sink),
    encode: (key) => encodeKey(mappedKey(codec, key)),
    // Only the codec knows the parts of its keys.
    plain: (key) => key,
    read: (bytes, start, end) => codec.decode(decodeKey(bytes, start, end)),
    readAll: (blob, ends) => decodeKeys(blob, ends).map((key) => codec.decode(key)),
  };
}

/** Appends the bytes of a Varve key. */
export function appendKey(key: Key, sink: ByteSink): void {
  const plain = plainKey(key);
  let end = writeKey(plain, sink.bytes, sink.at);
  if (end < 0) {
    sink.reserve(KEY_BYTES_MAX);
    end = writeKey(plain, sink.bytes, sink.at);
  }
  sink.at = end;
}

/** The Varve key that a codec returns. Throws `VARVE_INVALID_KEY` when the codec refuses. */
export function mappedKey<K>(codec: KeyCodec<K>, key: K): Key {
  try {
    return codec.encode(key);
  } catch (error) {
    if (error instanceof VarveError) throw error;
    throw new VarveError('VARVE_INVALID_KEY', `The key codec ${codec.name} refused a key.`, { cause: error });
  }
}
