/**
 * Several writes that are sent together.
 *
 * Invariant: a write is copied when it is added, and sent by `commit`. One object applies its part completely or not at all. A
 * batch for several objects is atomic only within each of them, and the caller has to allow that.
 */

import type { BatchWrites } from '../api.ts';
import type { BatchItem } from '../cloudflare/rpc.ts';
import { checkItem } from '../codec/item.ts';
import { invalid, VarveError } from '../errors.ts';
import { CONDITION, checkOptions, durabilityOf, type Known, RANGE, SET_ITEM, WRITE } from '../options.ts';
import type { Condition, KeyRange, SetItemOptions, WriteOptions } from '../types.ts';

/** The receipt of one shard for its part of a write. */
export interface ShardReceipt {
  /** The name of the shard; an empty string for a store that `connect` made. */
  readonly shard: string;
  /** The sequence of the last entry written there. */
  readonly sequence: number;
  readonly durability: 'strict';
}

/** Options of a write that may go to several shards. It is `strict` when it is done, whatever `durability` is. */
export interface ShardWriteOptions extends WriteOptions {
  /**
   * False: a write over several shards may be applied in only some of them if others fail. Default true: such a write is
   * refused with `VARVE_INVALID_ARGUMENT` before anything is sent.
   */
  atomic?: boolean | undefined;
}

export const SHARD_WRITE: Known<ShardWriteOptions> = { ...WRITE, atomic: 1 };

/** The writes of a batch, by the number of the shard that they go to. */
export type ShardParts<K, V> = Map<number, BatchItem<K, V>[]>;

/** The part of a store that its batches use. */
interface BatchTarget<K, V, R> {
  /** The shards that a write goes to. Throws if its key or its range is invalid. */
  shardsOf(item: BatchItem<K, V>): Iterable<number>;
  send(parts: ShardParts<K, V>, options: ShardWriteOptions): Promise<R>;
}

/** A batch of writes that are sent together. `R` is the result of its `commit`. */
export class RemoteBatch<K, V, R = ShardReceipt | ShardReceipt[]> implements BatchWrites<K, V> {
  readonly #parts: ShardParts<K, V> = new Map();
  readonly #target: BatchTarget<K, V, R>;
  #size = 0;
  #isCommitted = false;

  /** @internal */
  constructor(target: BatchTarget<K, V, R>) {
    this.#target = target;
  }

  get size(): number {
    return this.#size;
  }

  set(key: K, value: V, options?: SetItemOptions): this {
    checkItem(options);
    return this.#add(['set', key, value, options], options, SET_ITEM);
  }

  delete(key: K, options?: Condition): this {
    checkItem(options);
    return this.#add(['delete', key, options], options, CONDITION);
  }

  /** Adds the deletion of every key of a range. It is sent to all shards. */
  deleteRange(range: KeyRange<K>): this {
    return this.#add(['deleteRange', range], range, RANGE);
  }

  /**
   * Applies all writes; resolves with a receipt for each shard that the batch was sent to, or with the receipt of the one object. Can be
   * called once.
   * @throws `VARVE_CONFLICT` if a condition was not true: nothing was written in that shard. `VARVE_INVALID_ARGUMENT` if the batch
   * goes to several shards and `atomic` is not false.
   */
  async commit(options: ShardWriteOptions = {}): Promise<R> {
    this.#ensureOpen();
    durabilityOf(options, SHARD_WRITE);
    this.#isCommitted = true;
    return this.#target.send(this.#parts, options);
  }

  #add(given: BatchItem<K, V>, options: unknown, known: Readonly<Record<string, 1>>): this {
    this.#ensureOpen();
    checkOptions(options, known);
    const item = copyOf(given);
    for (const shard of this.#target.shardsOf(item)) {
      const part = this.#parts.get(shard);
      if (part === undefined) this.#parts.set(shard, [item]);
      else part.push(item);
    }
    this.#size++;
    return this;
  }

  #ensureOpen(): void {
    if (this.#isCommitted) throw invalid('The batch was committed already. Make a new one with batch().');
  }
}

/** A copy of the item, so that later changes by the caller are not written by `commit`. */
function copyOf<T>(item: T): T {
  try {
    return structuredClone(item);
  } catch (cause) {
    throw new VarveError('VARVE_INVALID_VALUE', 'A batch takes keys and values that structuredClone can copy.', {
      cause,
    });
  }
}
