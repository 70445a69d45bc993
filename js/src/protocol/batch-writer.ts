/**
 * The items of a batch, as the operation `batch` carries them: u32 count, then
 * { u8 kind, u8 flags, u16 0, u32 key_len, u32 value_len, key, value, pad to 4 }. The flags show whether a value begins with
 * a lifetime and a condition. The keys and ranges that a transaction has read are items too.
 *
 * Invariant: the sink has whole items only; an item whose key or value was refused leaves no trace. Keys and values
 * are encoded when they are added, so later changes of an object do not change the batch.
 */

import { checkItem, conditionOf } from '../codec/item.ts';
import { ByteSink } from '../codec/sink.ts';
import { checkLength } from '../codec/values.ts';
import { invalid } from '../errors.ts';
import type { Condition, Lifetime, SetItemOptions } from '../types.ts';
import { BatchKind, ITEM_HEADER_BYTES, ItemFlag } from './frame.ts';
import { type Encoder, rawBytes, reentered } from './frame-writer.ts';

/** Most bytes of a batch (crates/varve/src/types.rs has the reason). */
const BATCH_BYTES_MAX = 2 ** 28;

/** Collects the items of one batch. */
export class BatchWriter {
  readonly #sink: ByteSink;
  #count = 0;
  #writing = false;
  /** The positions of the key and the value of the last item in the sink. */
  keyAt = 0;
  keyEnd = 0;
  valueAt = 0;
  valueEnd = 0;
  /** The lifetime of the entry of the last set. */
  lifetime: Lifetime | undefined;

  /** Collects into `sink`, from its start; nothing else may use the sink meanwhile. */
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

  set<K, V>(keys: Encoder<K>, key: K, values: Encoder<V>, value: V, options?: SetItemOptions): void {
    this.#item(BatchKind.set, keys, key, values, value, options);
  }

  delete<K>(keys: Encoder<K>, key: K, options?: Condition): void {
    this.#item(BatchKind.delete, keys, key, undefined, undefined, conditionOf(options));
  }

  /** Deletes from `start` to before `end`; an empty `end` is the end of the store. */
  deleteRange(start: Uint8Array, end: Uint8Array): void {
    this.#item(BatchKind.deleteRange, rawBytes, start, rawBytes, end);
  }

  /** The transaction of the batch has read a key. */
  readKey(key: Uint8Array): void {
    this.#item(BatchKind.readKey, rawBytes, key, undefined, undefined);
  }

  /** The transaction of the batch has read the keys from `start` to before `end`; an empty `end` is the end of the store. */
  readRange(start: Uint8Array, end: Uint8Array): void {
    this.#item(BatchKind.readRange, rawBytes, start, rawBytes, end);
  }

  /** Appends the whole batch to a sink. */
  appendTo(sink: ByteSink): void {
    const { at } = sink;
    sink.append(this.view());
    for (const unread of this.#sink.blobs ?? []) sink.blobs?.push({ ...unread, at: at + unread.at });
  }

  /** The whole batch: a view that the next item makes stale. Throws while an item is being added. */
  view(): Uint8Array {
    if (this.#writing) throw reentered();
    this.#sink.setU32(0, this.#count);
    return this.#sink.bytes.subarray(0, this.#sink.at);
  }

  #item<K, V>(
    kind: number,
    keys: Encoder<K>,
    key: K,
    values: Encoder<V> | undefined,
    value: V,
    given?: SetItemOptions,
  ): void {
    if (this.#writing) throw reentered();
    // Options are read once, before the sink is used: they may be getters, and inherited.
    const options = checkItem(given);
    const flags = options === undefined ? 0 : itemFlags(options);
    const sink = this.#sink;
    const start = sink.at;
    sink.reserve(ITEM_HEADER_BYTES);
    sink.at = start + ITEM_HEADER_BYTES;
    this.#writing = true;
    try {
      keys.write(key, sink);
      const valueStart = sink.at;
      if ((flags & ItemFlag.expiresIn) !== 0) putU64(Number(options?.expiresAt ?? options?.expiresIn), sink);
      if ((flags & ItemFlag.ifSequence) !== 0) putU64(options?.ifSequence ?? 0, sink);
      const contentStart = sink.at;
      values?.write(value, sink);
      checkLength(sink.at - contentStart);
      if (sink.at > BATCH_BYTES_MAX) {
        throw invalid('A batch takes at most 256 MiB. Split it.');
      }
      sink.setU32(start, kind | (flags << 8));
      sink.setU32(start + 4, valueStart - start - ITEM_HEADER_BYTES);
      sink.setU32(start + 8, sink.at - valueStart);
      this.keyAt = start + ITEM_HEADER_BYTES;
      this.keyEnd = valueStart;
      this.valueAt = contentStart;
      this.valueEnd = sink.at;
      this.lifetime = options;
      sink.pad4();
      this.#count++;
    } catch (error) {
      sink.rewind(start);
      throw error;
    } finally {
      this.#writing = false;
    }
  }
}

/** The flags of an item whose options are checked. */
function itemFlags({ expiresIn, expiresAt, ifSequence }: SetItemOptions): number {
  const expiry = expiresAt !== undefined ? ItemFlag.expiresIn | ItemFlag.expiresAt : 0;
  return (expiresIn !== undefined ? ItemFlag.expiresIn : expiry) | (ifSequence !== undefined ? ItemFlag.ifSequence : 0);
}

/** Writes an integer of up to 53 bits; a fraction of a millisecond is rounded up. */
function putU64(number: number, sink: ByteSink): void {
  const whole = Math.ceil(number);
  sink.u32(whole >>> 0);
  sink.u32(Math.floor(whole / 0x1_0000_0000));
}
