/**
 * Writes keys and values straight into the engine's scratch.
 *
 *     scratch: [ key | value ]
 *
 * Invariant: between the first byte written and the engine call nothing else writes the scratch. All code of the user (codecs,
 * getters) runs before: first a key is made plain and a value is encoded elsewhere. A write that is called while another one is being
 * encoded is refused.
 */

import { isBytes } from '../codec/intrinsics.ts';
import { writeKey } from '../codec/keys.ts';
import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import { ByteSink } from '../codec/sink.ts';
import { bytes, checkedBytes, checkLength, structured, type ValueFormat } from '../codec/values.ts';
import { reentered } from '../protocol/frame-writer.ts';
import type { Key } from '../types.ts';
import type { EngineMemory } from '../wasm/memory.ts';

/** The tag byte of raw bytes (codec/values.ts). */
export const TAG_RAW = 0;
/** A sink that grew beyond this is not kept. */
const SINK_BYTES_KEPT = 1024 * 1024;

/** Whether a Uint8Array is stored, and read, as it is. */
export function isRaw(values: object): boolean {
  return values === structured || values === bytes;
}

/** Writes keys and values of one store into the scratch. */
export class ScratchWriter {
  readonly #memory: EngineMemory;
  #sink = new ByteSink(4096);
  #encoding = false;
  /** Length of the last value written by `pair`. */
  valueBytes = 0;

  constructor(memory: EngineMemory) {
    this.#memory = memory;
  }

  /** Writes a plain key at the start of the scratch; returns its length. */
  key(plain: Key): number {
    return writeKey(plain, this.#memory.fresh().scratch, 0);
  }

  /** Writes a plain key and a value; returns the length of the key, and leaves that of the value in `valueBytes`. */
  pair<V>(plain: Key, value: V, values: ValueFormat<V>): number {
    if (isRaw(values) && isBytes(value)) {
      const length = checkedBytes(value);
      let keyBytes = writeKey(plain, this.#memory.fresh().scratch, 0);
      if (keyBytes + 1 + length > this.#memory.scratch.length) {
        this.#memory.reserve(keyBytes + 1 + length);
        keyBytes = writeKey(plain, this.#memory.scratch, 0);
      }
      const { scratch } = this.#memory;
      scratch[keyBytes] = TAG_RAW;
      scratch.set(value, keyBytes + 1);
      this.valueBytes = length + 1;
      return keyBytes;
    }
    const sink = this.#encode(value, values);
    this.#memory.reserve(KEY_BYTES_MAX + sink.at);
    const keyBytes = writeKey(plain, this.#memory.scratch, 0);
    this.#memory.scratch.set(sink.bytes.subarray(0, sink.at), keyBytes);
    this.valueBytes = sink.at;
    if (sink.bytes.length > SINK_BYTES_KEPT) this.#sink = new ByteSink(4096);
    return keyBytes;
  }

  #encode<V>(value: V, values: ValueFormat<V>): ByteSink {
    if (this.#encoding) throw reentered();
    const sink = this.#sink;
    sink.at = 0;
    this.#encoding = true;
    try {
      values.write(value, sink);
    } finally {
      this.#encoding = false;
    }
    checkLength(sink.at);
    return sink;
  }
}
