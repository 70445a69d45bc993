/**
 * The items of a batch, as the operation `batch` carries them: u32 count, then
 * { u8 kind, u8[3] 0, u32 key_len, u32 value_len, key, value, pad to 4 }.
 *
 * Invariant: the sink holds whole items only; an item whose key or value was refused leaves no trace. Keys and values
 * are encoded when they are added, so changing an object afterwards changes nothing.
 */

import { ByteSink } from '../codec/sink.ts';
import { VALUE_BYTES_MAX } from '../codec/values.ts';
import { VarveError } from '../errors.ts';
import { BatchKind } from './frame.ts';
import { type Encoder, rawBytes } from './frame-writer.ts';

const ITEM_HEADER_BYTES = 12;

/** Collects the items of one batch. */
export class BatchWriter {
  readonly #sink: ByteSink;
  #count = 0;

  /** Collects into `sink`, from its start; it must be left alone meanwhile. */
  constructor(sink: ByteSink = new ByteSink(512)) {
    this.#sink = sink;
    sink.at = 0;
    sink.u32(0);
  }

  /** Items so far. */
  get count(): number {
    return this.#count;
  }

  /** Bytes of the batch so far. */
  get bytes(): number {
    return this.#sink.at;
  }

  set<K, V>(keys: Encoder<K>, key: K, values: Encoder<V>, value: V): void {
    this.#item(BatchKind.set, keys, key, values, value);
  }

  delete<K>(keys: Encoder<K>, key: K): void {
    this.#item(BatchKind.delete, keys, key, undefined, undefined);
  }

  /** Deletes from `start` to before `end`; an empty `end` is the end of the store. */
  deleteRange(start: Uint8Array, end: Uint8Array): void {
    this.#item(BatchKind.deleteRange, rawBytes, start, rawBytes, end);
  }

  /** The whole batch: a view that the next item makes stale. */
  view(): Uint8Array {
    this.#sink.setU32(0, this.#count);
    return this.#sink.bytes.subarray(0, this.#sink.at);
  }

  #item<K, V>(kind: number, keys: Encoder<K>, key: K, values: Encoder<V> | undefined, value: V): void {
    const sink = this.#sink;
    const start = sink.at;
    sink.reserve(ITEM_HEADER_BYTES);
    sink.at = start + ITEM_HEADER_BYTES;
    try {
      keys.write(key, sink);
      const value_start = sink.at;
      values?.write(value, sink);
      if (sink.at - value_start > VALUE_BYTES_MAX) {
        throw new VarveError(
          'VARVE_INVALID_VALUE',
          `A value takes at most ${VALUE_BYTES_MAX} bytes; this one is longer.`,
        );
      }
      sink.setU32(start, kind);
      sink.setU32(start + 4, value_start - start - ITEM_HEADER_BYTES);
      sink.setU32(start + 8, sink.at - value_start);
      sink.pad4();
      this.#count++;
    } catch (error) {
      sink.at = start;
      throw error;
    }
  }
}
