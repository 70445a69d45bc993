/**
 * A batch: writes that are applied together or not at all.
 *
 * Invariant: keys and values are encoded when they are added; a batch is committed once and accepts nothing afterwards.
 */

import type { BatchWrites, Place } from '../api.ts';
import { type Formats, formatsAt } from '../codec/formats.ts';
import { encodeDeletion } from '../codec/range.ts';
import { ByteSink, takingBlobs } from '../codec/sink.ts';
import { invalid } from '../errors.ts';
import { CONDITION, checkOptions, SET_ITEM } from '../options.ts';
import { BatchWriter } from '../protocol/batch-writer.ts';
import { rawBytes } from '../protocol/frame-writer.ts';
import type { Condition, Key, KeyRange, Receipt, SetItemOptions, ViewOptions, WriteOptions } from '../types.ts';

/** Commits a batch. It checks the options, and then calls `end`, which ends the batch and returns the items. */
export type CommitBatch<R> = (end: () => BatchWriter, options: WriteOptions | undefined) => R;

/** The writes of a batch, which all views of it share. */
class Items<R> {
  readonly commit: CommitBatch<R>;
  readonly writer: BatchWriter;
  isCommitted = false;

  constructor(commit: CommitBatch<R>, sink: ByteSink | undefined) {
    this.commit = commit;
    this.writer = new BatchWriter(sink ?? takingBlobs(new ByteSink(512)));
  }
}

/**
 * Writes collected by `store.batch()`, applied atomically by `commit()`.
 *
 * @example
 * await db.batch().set('a', 1).set('b', 2).delete('c').commit({ durability: 'strict' });
 */
export class Batch<K, V, R = Promise<Receipt>> implements BatchWrites<K, V> {
  /** @internal The formats of its keys and values. */
  readonly formats: Formats<K, V>;
  readonly #items: Items<R>;

  /** @internal Made by `store.batch()`. Items are collected in `sink` until the commit. */
  constructor(formats: Formats<K, V>, items: Items<R> | CommitBatch<R>, sink?: ByteSink) {
    this.formats = formats;
    this.#items = items instanceof Items ? items : new Items(items, sink);
  }

  /**
   * The batch in a part of the store: in a view of the same store, or in the keys that begin with a prefix, relative to this batch's
   * own. It is one batch: each of its views commits all of it.
   *
   * @example
   * await db.batch().set('version', 2).at(users).set('ada', ada).commit();
   */
  at<K2 = Key, V2 = V>(place: Place<K2, V2>, options?: ViewOptions<K2, V2>): Batch<K2, V2, R> {
    return new Batch(formatsAt(this.formats, place, options), this.#items);
  }

  get size(): number {
    return this.#items.writer.count;
  }

  set(key: K, value: V, options?: SetItemOptions): this {
    this.#ensureOpen();
    checkOptions(options, SET_ITEM);
    this.#items.writer.set(this.formats.keys, key, this.formats.values, value, options);
    return this;
  }

  /** @internal Adds a write of a value that is encoded already. */
  setEncoded(key: K, value: Uint8Array, options?: SetItemOptions): void {
    this.#items.writer.set(this.formats.keys, key, rawBytes, value, options);
  }

  delete(key: K, options?: Condition): this {
    this.#ensureOpen();
    checkOptions(options, CONDITION);
    this.#items.writer.delete(this.formats.keys, key, options);
    return this;
  }

  deleteRange(range: KeyRange<K>): this {
    this.#ensureOpen();
    const bytes = encodeDeletion(range, this.formats.keys);
    if (bytes !== undefined) this.#items.writer.deleteRange(bytes.start, bytes.end);
    return this;
  }

  /**
   * Applies all writes; the result is there when they have the requested durability. Fails with `VARVE_CONFLICT` when a condition was
   * not true. Can be called once; a call that an aborted signal refused does not count.
   */
  commit(options?: WriteOptions): R {
    return this.#items.commit(() => {
      this.#ensureOpen();
      this.#items.writer.view();
      this.#items.isCommitted = true;
      return this.#items.writer;
    }, options);
  }

  #ensureOpen(): void {
    if (this.#items.isCommitted) {
      throw invalid('The batch was committed already. Make a new one with batch().');
    }
  }
}
