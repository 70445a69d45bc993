/**
 * Several writes of the synchronous store that happen together.
 *
 * Invariant: nothing is written before `commit`; then the whole batch is one record of the log, so all of it survives or none.
 * Keys and values are encoded when they are added.
 */

import type { KeyFormat } from '../codec/key-format.ts';
import { encodeDeletion } from '../codec/range.ts';
import type { ByteSink } from '../codec/sink.ts';
import type { ValueFormat } from '../codec/values.ts';
import { VarveError } from '../errors.ts';
import { CONDITION, checkOptions, SET_ITEM } from '../options.ts';
import { BatchWriter } from '../protocol/batch-writer.ts';
import type { Condition, KeyCodec, KeyRange, Receipt, SetItemOptions } from '../types.ts';
import { SYNC_WRITE, type SyncWriteOptions } from './options.ts';

/** Commits the items of a batch. */
export type CommitBatch = (items: Uint8Array, options: SyncWriteOptions) => Receipt;

/** The parts of a batch. */
export interface SyncBatchParts<K, V> {
  readonly codec: KeyCodec<K> | undefined;
  readonly keys: KeyFormat<K>;
  readonly values: ValueFormat<V>;
  /** Where items are collected until the commit. */
  readonly sink: ByteSink;
  readonly commit: CommitBatch;
}

/** Collects writes. */
export class SyncBatch<K, V> {
  readonly #writer: BatchWriter;
  readonly #parts: SyncBatchParts<K, V>;
  #committed = false;

  /** @internal Made by `SyncStore.batch`. */
  constructor(parts: SyncBatchParts<K, V>) {
    this.#parts = parts;
    this.#writer = new BatchWriter(parts.sink);
  }

  /** Writes added so far. */
  get size(): number {
    return this.#writer.count;
  }

  /** Bytes of the writes added so far. */
  get bytes(): number {
    return this.#writer.bytes;
  }

  /**
   * Adds a set. Throws `VARVE_INVALID_KEY` or `VARVE_INVALID_VALUE`; the batch is then unchanged. `ifSequence` is compared
   * with the store before the batch: if one condition is not true, nothing of the batch is written.
   */
  set(key: K, value: V, options?: SetItemOptions): this {
    this.#ensureOpen();
    checkOptions(options, SET_ITEM);
    this.#writer.set(this.#parts.keys, key, this.#parts.values, value, options);
    return this;
  }

  /** Adds the deletion of a key. */
  delete(key: K, options?: Condition): this {
    this.#ensureOpen();
    checkOptions(options, CONDITION);
    this.#writer.delete(this.#parts.keys, key, options);
    return this;
  }

  /** Adds the deletion of every key of a range that is there when the batch is applied, or was set earlier in it. */
  deleteRange(range: KeyRange<K>): this {
    this.#ensureOpen();
    const bytes = encodeDeletion(range, this.#parts.codec);
    if (bytes !== undefined) this.#writer.deleteRange(bytes.start, bytes.end);
    return this;
  }

  /** Applies all writes. Throws `VARVE_CONFLICT` when a condition was not true. Can be called once. */
  commit(options: SyncWriteOptions = {}): Receipt {
    this.#ensureOpen();
    checkOptions(options, SYNC_WRITE);
    const items = this.#writer.view();
    this.#committed = true;
    return this.#parts.commit(items, options);
  }

  #ensureOpen(): void {
    if (this.#committed) {
      throw new VarveError('VARVE_INVALID_ARGUMENT', 'The batch was committed already. Make a new one with batch().');
    }
  }
}
