/**
 * Writes keys and values straight into the engine's scratch.
 *
 *     scratch: [ key | value ]
 *
 * Invariant: between `key` and the engine call nothing else may write the scratch. Values that run code of the user
 * (codecs, getters) are therefore encoded aside first, and a codec that calls the store meanwhile is refused.
 */

import { mappedKey } from '../codec/key-format.ts';
import { KEY_BYTES_MAX, writeKey } from '../codec/keys.ts';
import { ByteSink } from '../codec/sink.ts';
import { bytes, structured, VALUE_BYTES_MAX, type ValueFormat } from '../codec/values.ts';
import { VarveError } from '../errors.ts';
import type { Key, KeyCodec } from '../types.ts';
import type { EngineMemory } from '../wasm/memory.ts';

/** The tag byte of raw bytes (codec/values.ts). */
export const TAG_RAW = 0;
/** A sink that grew beyond this is let go. */
const SINK_BYTES_KEPT = 1024 * 1024;

/** Writes keys and values of one store into the scratch. */
export class ScratchWriter<K, V> {
  readonly #memory: EngineMemory;
  readonly #codec: KeyCodec<K> | undefined;
  readonly #values: ValueFormat<V>;
  /** Whether a Uint8Array is stored, and read, as it is. */
  readonly raw: boolean;
  #sink = new ByteSink(4096);
  #encoding = false;
  /** Length of the last value written by `pair`. */
  valueBytes = 0;

  constructor(memory: EngineMemory, keys: KeyCodec<K> | undefined, values: ValueFormat<V>) {
    this.#memory = memory;
    this.#codec = keys;
    this.#values = values;
    const format: unknown = values;
    this.raw = format === structured || format === bytes;
  }

  /** Writes a key at the start of the scratch; returns its length. */
  key(key: K): number {
    const plain = this.#codec === undefined ? (key as unknown as Key) : mappedKey(this.#codec, key);
    return writeKey(plain, this.#memory.fresh().scratch, 0);
  }

  /** Writes a key and its value; returns the length of the key, and leaves that of the value in `valueBytes`. */
  pair(key: K, value: V): number {
    if (this.raw && value instanceof Uint8Array) {
      const keyBytes = this.key(key);
      const length = value.length;
      if (keyBytes + 1 + length > this.#memory.scratch.length) return this.#long(key, value, keyBytes);
      const { scratch } = this.#memory;
      scratch[keyBytes] = TAG_RAW;
      scratch.set(value, keyBytes + 1);
      this.valueBytes = length + 1;
      return keyBytes;
    }
    const sink = this.#encode(value);
    this.#memory.reserve(KEY_BYTES_MAX + sink.at);
    const keyBytes = this.key(key);
    this.#memory.scratch.set(sink.bytes.subarray(0, sink.at), keyBytes);
    this.valueBytes = sink.at;
    if (sink.bytes.length > SINK_BYTES_KEPT) this.#sink = new ByteSink(4096);
    return keyBytes;
  }

  /** A value that the scratch has no room for. */
  #long(key: K, value: Uint8Array, keyBytes: number): number {
    if (value.length >= VALUE_BYTES_MAX) {
      throw new VarveError(
        'VARVE_INVALID_VALUE',
        `A value takes at most ${VALUE_BYTES_MAX} bytes; this one is longer.`,
      );
    }
    this.#memory.reserve(keyBytes + 1 + value.length);
    this.key(key);
    this.#memory.scratch[keyBytes] = TAG_RAW;
    this.#memory.scratch.set(value, keyBytes + 1);
    this.valueBytes = value.length + 1;
    return keyBytes;
  }

  #encode(value: V): ByteSink {
    if (this.#encoding) {
      throw new VarveError(
        'VARVE_INVALID_ARGUMENT',
        'A codec or a getter called the store while a value was being encoded.',
      );
    }
    const sink = this.#sink;
    sink.at = 0;
    this.#encoding = true;
    try {
      this.#values.write(value, sink);
    } finally {
      this.#encoding = false;
    }
    return sink;
  }
}
