/**
 * How a store, or a view of a part of it, writes and reads its keys: the key codec of the user, if any, over the bytes of keys.ts.
 *
 *   key of a view of ['a', 1]      key in the store
 *   'x'                            ['a', 1, 'x']        a key that is not an array counts as an array of one
 *   ['x', 2]                       ['a', 1, 'x', 2]
 *   []                             ['a', 1]
 *
 * So every key that begins with the prefix is a key of the view, and a view of ['b'] in a view of ['a'] is a view of ['a', 'b'].
 *
 * Invariant: the order of the keys is the order of the Varve keys in the store.
 */

import { VarveError } from '../errors.ts';
import type { Key, KeyCodec } from '../types.ts';
import { decodeKey, decodeKeys } from './key-reader.ts';
import { encodePlain, writeKey } from './keys.ts';
import { invalid, KEY_BYTES_MAX, plainKey } from './plain-key.ts';
import { ReservedKey } from './reserved-key.ts';
import type { ByteSink } from './sink.ts';

/** Turns keys of one store or view into bytes and back. */
export class KeyFormat<K> {
  readonly codec: KeyCodec<K> | undefined;
  /** The first elements of every key in the store; none for the whole store. */
  readonly prefix: readonly Key[];
  /** Every key begins with these bytes. */
  readonly first: Uint8Array;

  constructor(codec: KeyCodec<K> | undefined, prefix: readonly Key[] = []) {
    this.codec = codec;
    this.prefix = prefix;
    this.first = prefix.length === 0 ? new Uint8Array(0) : encodePlain(prefix);
  }

  /** The format of a part of these keys. Throws `VARVE_INVALID_KEY` for a prefix that is not an array of keys. */
  at<K2>(prefix: readonly Key[], codec: KeyCodec<K2> | undefined): KeyFormat<K2> {
    const plain = plainKey(prefix);
    if (!Array.isArray(plain)) throw invalid('The prefix of a view is an array of keys.');
    return new KeyFormat(codec, [...this.prefix, ...plain]);
  }

  /** The Varve key in the store, in a plain form. Throws `VARVE_INVALID_KEY`. */
  stored(key: K): Key {
    const { codec, prefix } = this;
    // Without a codec keys are Varve keys: K is Key or a part of it.
    const own = plainKey(codec === undefined ? (key as Key) : mappedKey(codec, key));
    // A view has no reserved keys of its own: they are the store's.
    if (prefix.length === 0 || ReservedKey.is(own)) return own;
    return Array.isArray(own) ? [...prefix, ...own] : [...prefix, own];
  }

  /** The key of a Varve key in the store. */
  own(stored: Key): K {
    const { codec, prefix } = this;
    let own = stored;
    if (prefix.length > 0) {
      const rest = (stored as readonly Key[]).slice(prefix.length);
      const [only] = rest;
      own = rest.length === 1 && !Array.isArray(only) ? (only as Key) : rest;
    }
    return codec === undefined ? (own as K) : codec.decode(own);
  }

  /** Appends the bytes of a key. Throws `VARVE_INVALID_KEY`. Code of the user runs before the sink is used. */
  write(key: K, sink: ByteSink): void {
    const stored = this.stored(key);
    let end = writeKey(stored, sink.bytes, sink.at);
    if (end < 0) {
      sink.reserve(KEY_BYTES_MAX);
      end = writeKey(stored, sink.bytes, sink.at);
    }
    sink.at = end;
  }

  /** The bytes of a key. Throws `VARVE_INVALID_KEY`. */
  encode(key: K): Uint8Array {
    return encodePlain(this.stored(key));
  }

  /** The plain key, for code that needs the key more than once: it is the same each time. */
  plain(key: K): K {
    // Only the codec knows the parts of its keys.
    return this.codec === undefined ? (plainKey(key as Key) as K) : key;
  }

  /** The key of bytes. Throws if the key is outside of the view. */
  read(bytes: Uint8Array, start: number, end: number): K {
    if (!this.first.every((byte, i) => byte === bytes[start + i])) throw invalid('The key is outside of the view.');
    return this.own(decodeKey(bytes, start, end));
  }

  /** The keys of a scan batch; key `i` ends at `ends[i]`. */
  readAll(blob: Uint8Array, ends: ArrayLike<number>): K[] {
    const keys = decodeKeys(blob, ends);
    const isPlain = this.codec === undefined && this.prefix.length === 0;
    return isPlain ? (keys as K[]) : keys.map((key) => this.own(key));
  }
}

/** The Varve key that a codec returns. Throws `VARVE_INVALID_KEY` when the codec refuses. */
function mappedKey<K>(codec: KeyCodec<K>, key: K): Key {
  try {
    return codec.encode(key);
  } catch (error) {
    if (error instanceof VarveError) throw error;
    throw new VarveError('VARVE_INVALID_KEY', `The key codec ${codec.name} refused a key.`, { cause: error });
  }
}
