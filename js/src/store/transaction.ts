/**
 * Transactions of the asynchronous store.
 *
 * Life of one: a snapshot is taken; the caller's function reads it, with its own writes laid over, for as long as it likes, and
 * begins in the same turn, so that its first reads travel with the snapshot they are of; then what it read and what it wrote
 * travel to the engine as one batch, which is written if nothing of what was read has been written since. If something has, all
 * of it is done again, from a new snapshot.
 *
 * Invariant: nothing is written before the function has resolved, and then everything or nothing. An attempt's snapshot is
 * let go when the attempt ends, however it ends.
 */

import { encodeRange } from '../codec/range.ts';
import { abortError, type VarveError } from '../errors.ts';
import { EngineConflict, namedConflict } from '../protocol/conflict.ts';
import { Op, Status } from '../protocol/frame.ts';
import { type Operation, rawBytes } from '../protocol/frame-writer.ts';
import { backOff, checkRetries, lastConflict, RETRIES_DEFAULT, untilAborted } from '../transaction/retry.ts';
import { Workspace } from '../transaction/workspace.ts';
import type { KeyCodec, KeyRange, ScanOptions, TransactionOptions, TransactionSetOptions } from '../types.ts';
import type { Client } from '../worker/client.ts';
import { Cursor, firstBatchBytes } from './cursor.ts';
import { levelOfSnapshot } from './moment.ts';
import { batch_operation, type Operations, type ScanOperations, scan_entries, scan_keys } from './operations.ts';
import { OverlayCursor } from './overlay-cursor.ts';
import { ReadView } from './read-view.ts';
import { ScanIterator, type StoreIterator, type Unpack } from './scan-iterator.ts';
import { letGo, take } from './snapshot-hold.ts';
import { entriesOf, keysOf, valuesOf } from './unpack.ts';

/** What a store gives its transactions. */
export interface TransactionParts<K, V> {
  readonly client: Client;
  readonly operations: Operations<K, V>;
  readonly codec: KeyCodec<K> | undefined;
  /** Number of the durability that commits ask for. */
  readonly level: number;
}

/** Reserved keys, for what a store keeps about itself. */
export interface Reserved {
  get(key: Uint8Array): Promise<Uint8Array | undefined>;
  set(key: Uint8Array, value: Uint8Array): void;
}

/**
 * What the function of `store.transaction()` works on: reads of one snapshot, with the transaction's own writes laid over
 * it. Writes return at once and are applied together when the function has resolved. After that every call gives
 * `VARVE_CLOSED`.
 *
 * @example
 * await db.transaction(async (tx) => {
 *   const [from, to] = await tx.getMany(['from', 'to']);
 *   tx.set('from', from - 10);
 *   tx.set('to', to + 10);
 * });
 */
export class Transaction<K, V> implements AsyncIterable<[K, V]> {
  readonly #parts: TransactionParts<K, V>;
  readonly #work: Workspace<K, V>;
  readonly #snapshot: number;
  readonly #view: ReadView<K, V>;

  /** @internal Made by `store.transaction()`. */
  constructor(parts: TransactionParts<K, V>, work: Workspace<K, V>, snapshot: number) {
    this.#parts = parts;
    this.#work = work;
    this.#snapshot = snapshot;
    this.#view = new ReadView(parts.client, parts.operations, parts.codec, { number: snapshot, refusal: undefined });
  }

  /** The value of a key, or undefined where there is none. */
  async get(key: K): Promise<V | undefined> {
    const own = this.#work.look(key);
    return own === undefined ? this.#view.get(key) : own.value;
  }

  /** The values of several keys, in their order. */
  getMany(keys: Iterable<K>): Promise<(V | undefined)[]> {
    return Promise.all(Array.from(keys, (key) => this.get(key)));
  }

  /** Whether a key is there. */
  async has(key: K): Promise<boolean> {
    return this.#work.holds(key) ?? this.#view.has(key);
  }

  /** Whether each of several keys is there, in their order. */
  hasMany(keys: Iterable<K>): Promise<boolean[]> {
    return Promise.all(Array.from(keys, (key) => this.has(key)));
  }

  /** The keys of a range, in order, as they are at this call: writes that follow do not change it. */
  keys(options: ScanOptions<K> = {}): StoreIterator<K> {
    return this.#scan(scan_keys, options, keysOf(this.#parts.operations));
  }

  /** The values of a range, in the order of their keys. */
  values(options: ScanOptions<K> = {}): StoreIterator<V> {
    return this.#scan(scan_entries, options, valuesOf(this.#parts.operations));
  }

  /**
   * The entries of a range, in the order of their keys. Of a loop that is left early, only what was walked counts as read.
   *
   * @example
   * for await (const [key, job] of tx.entries({ prefix: ['job'], limit: 1 })) tx.delete(key);
   */
  entries(options: ScanOptions<K> = {}): StoreIterator<[K, V]> {
    return this.#scan(scan_entries, options, entriesOf(this.#parts.operations));
  }

  /** All entries, in the order of their keys. */
  [Symbol.asyncIterator](): StoreIterator<[K, V]> {
    return this.entries();
  }

  /** How many keys a range has. */
  async count(range: KeyRange<K> = {}): Promise<number> {
    if (this.#work.countsAsSnapshot(range)) return this.#view.count(range);
    const cursor = this.#cursor(scan_keys, { ...range, reverse: false, limit: undefined })?.cursor;
    let count = 0;
    for (let batch = await cursor?.take(); batch !== undefined; batch = await cursor?.take()) count += batch.count;
    return count;
  }

  /**
   * Writes a value. It is encoded before the call returns. Its lifetime, if it has one, begins with the commit.
   *
   * @example
   * tx.set(['session', id], user, { expiresIn: 60_000 });
   */
  set(key: K, value: V, options?: TransactionSetOptions): void {
    this.#work.set(key, value, options);
  }

  /** Replaces a value by what `change` makes of it; undefined stands for an absent key. */
  async update(
    key: K,
    change: (value: V | undefined) => V | PromiseLike<V>,
    options?: TransactionSetOptions,
  ): Promise<void> {
    this.set(key, await change(await this.get(key)), options);
  }

  /** Deletes a key. */
  delete(key: K): void {
    this.#work.delete(key);
  }

  /** Deletes every key of a range. A range without bounds is refused: that is `clear()`. */
  deleteRange(range: KeyRange<K>): void {
    this.#work.deleteRange(range);
  }

  /** Deletes everything. */
  clear(): void {
    this.#work.clear();
  }

  #scan<T>(operations: ScanOperations, options: ScanOptions<K>, unpack: Unpack<T>): StoreIterator<T> {
    const { signal } = options;
    const opened = this.#cursor(operations, options);
    const noted: Unpack<T> = (batch) => {
      const item = unpack(batch);
      return (i) => {
        opened?.scan.reached(batch, i);
        return item(i);
      };
    };
    return new ScanIterator(opened?.cursor, noted, signal);
  }

  /** Opens a scan; undefined for one that has nothing to bring. */
  #cursor(operations: ScanOperations, options: ScanOptions<K>) {
    const { client, codec } = this.#parts;
    const { reverse = false, limit, signal } = options;
    const { wanted } = operations;
    const scan = this.#work.scan(options, wanted.values);
    client.ensureOpen();
    if (signal?.aborted) throw abortError(signal);
    if (scan === undefined) return undefined;
    const request = { reverse, limit: scan.store_limit, snapshot: this.#snapshot, ...wanted };
    const range = encodeRange(options, codec);
    const batch_bytes = firstBatchBytes(limit);
    const cursor = scan.asks_store ? new Cursor(client, operations, { ...request, range, batch_bytes }) : undefined;
    const overlaid = new OverlayCursor(scan, cursor);
    this.#work.atEnd(() => overlaid.close());
    return { scan, cursor: overlaid };
  }
}

const get_reserved: Operation<Uint8Array, undefined, Uint8Array | undefined> = {
  code: Op.get,
  key: rawBytes,
  value: undefined,
  read: ({ status, bytes, start, end }) => (status === Status.missing ? undefined : bytes.slice(start, end)),
};

/** Runs a function in a transaction, again while it conflicts or lost its snapshot with the tab that led the store. */
export async function runTransaction<K, V, T>(
  parts: TransactionParts<K, V>,
  run: (tx: Transaction<K, V>, reserved: Reserved) => T | PromiseLike<T>,
  { retries = RETRIES_DEFAULT, signal }: TransactionOptions = {},
): Promise<T> {
  checkRetries(retries);
  for (let attempt = 1; ; attempt++) {
    if (signal?.aborted) throw abortError(signal);
    try {
      return await runOnce(parts, run, signal);
    } catch (error) {
      const is_over = !(error instanceof EngineConflict || (error as Partial<VarveError>)?.code === 'VARVE_RETRY');
      if (is_over || attempt > retries) throw namedConflict(error, parts.operations.keys, lastConflict(attempt));
    }
    await backOff(attempt, signal);
  }
}

async function runOnce<K, V, T>(
  parts: TransactionParts<K, V>,
  run: (tx: Transaction<K, V>, reserved: Reserved) => T | PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const { client, operations, codec, level } = parts;
  const { keys, values } = operations;
  client.ensureOpen();
  const number = client.numbers.ofSnapshot();
  const taken = take(client, number);
  /** Why there is no snapshot, which says more than that its reads find none. */
  let refusal: unknown;
  taken.catch((error) => {
    refusal = error;
  });
  const work = new Workspace<K, V>({ keys, values, codec });
  const reserved: Reserved = {
    get: (key) => {
      work.askRaw(key);
      return client.submit(get_reserved, key, undefined, levelOfSnapshot(number));
    },
    set: (key, value) => work.setRaw(key, value),
  };
  let committed: Promise<unknown> | undefined;
  let result: T;
  try {
    const running = (async () => run(new Transaction(parts, work, number), reserved))();
    result = await untilAborted(running, signal);
    const batch = work.end();
    // In one frame with the end of the snapshot, which the engine lets go after it.
    if (batch !== undefined) {
      committed = client.submit(batch_operation, undefined, batch, level | levelOfSnapshot(number), signal);
    }
  } catch (error) {
    throw refusal ?? error;
  } finally {
    work.close();
    void letGo({ client, number });
  }
  await Promise.all([taken, committed]);
  return result;
}
