/**
 * Transactions of the asynchronous store.
 *
 * The life of a transaction: A snapshot is taken. The caller's function reads the snapshot, with its own writes laid over it, for
 * as long as it likes. The function begins in the same turn, so that its first reads are sent together with the request for the
 * snapshot. Then the keys and ranges that it read, and its writes, are sent to the engine as one batch. The batch is written if
 * nobody has written those keys and ranges since. Otherwise everything is done again, from a new snapshot.
 *
 * Invariant: nothing is written before the function has resolved, and then everything or nothing. The snapshot of an attempt is
 * released when the attempt ends, however it ends.
 */

import type { Place, Reads, TransactionWrites } from '../api.ts';
import { batchOperation, Operations, type ScanOperations, scanEntries, scanKeys } from '../client/operations.ts';
import { BlobSink } from '../codec/blobs.ts';
import { textOfBytes } from '../codec/byte-text.ts';
import { formatsAt } from '../codec/formats.ts';
import { itemOf } from '../codec/item.ts';
import type { ByteRange } from '../codec/range.ts';
import { COUNT, checkOptions, checkWait, LIFETIME, SCAN, several } from '../options.ts';
import { EngineConflict, namedConflict } from '../protocol/conflict.ts';
import { Op, Status } from '../protocol/frame.ts';
import { type Operation, rawBytes } from '../protocol/frame-writer.ts';
import { upgradeOf, VERSION_KEY, versionBytes } from '../protocol/version.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import { isConflict, overtaken } from '../transaction/again.ts';
import { DERIVED_KEY, Derivations, markWritten, type Reserved } from '../transaction/derived.ts';
import { lifetimeOf } from '../transaction/lifetime.ts';
import type { OverlayScan } from '../transaction/overlay-scan.ts';
import type { OwnWrites } from '../transaction/own-writes.ts';
import { backOff, checkRetries, lastConflict, RETRIES_DEFAULT } from '../transaction/retry.ts';
import { type Call, inTurn, Turn } from '../transaction/turns.ts';
import { Workspace } from '../transaction/workspace.ts';
import type {
  CountOptions,
  Key,
  KeyRange,
  Lifetime,
  OldValue,
  RangeIterator,
  Receipt,
  ScanOptions,
  TransactionOptions,
  UpdateLifetime,
  UpgradeVersions,
  ViewOptions,
  WaitOptions,
} from '../types.ts';
import { type BatchSource, Cursor, firstBatchBytes } from './cursor.ts';
import { OverlayCursor } from './overlay-cursor.ts';
import { ReadView } from './read-view.ts';
import { type Course, entriesOf, keysOf, ScanIterator, type Unpack, valuesOf } from './scan-iterator.ts';
import { levelOfSnapshot, releaseSnapshot, takeSnapshot } from './snapshot-handle.ts';
import { readBlobs } from './until-ended.ts';
import type { UpdateParts } from './update.ts';

/** One attempt of a transaction, with the parts of its store. */
export interface TransactionState<K, V> extends UpdateParts<K, V> {
  /** The sink of its writes. */
  readonly blobs: BlobSink;
  readonly work: Workspace<K, V>;
  /** The number of its snapshot. */
  readonly snapshot: number;
  readonly reserved: Reserved;
  /** Is not garbage collected while the handle of the transaction, or a view of it, is reachable. */
  readonly owner?: object;
  /** The receipt of its writes, from the moment when they are sent. */
  committed?: Promise<Receipt>;
}

/** Upgrades a store from one version to another, inside a transaction. */
export type Upgrade<K, V> = (tx: Transaction<K, V>, versions: UpgradeVersions) => void | PromiseLike<void>;

/**
 * The argument of the function of `store.transaction()`. Its reads see one snapshot, with the transaction's own writes laid over
 * it. Its writes return at once and are applied together when the function has resolved. After that every call fails with
 * `VARVE_CLOSED`.
 *
 * @example
 * await db.transaction(async (tx) => {
 *   const [from, to] = await tx.getMany(['from', 'to']);
 *   tx.set('from', from - 10);
 *   tx.set('to', to + 10);
 * });
 */
export class Transaction<K, V>
  implements Omit<Reads<K, V>, 'getEntry'>, TransactionWrites<K, V>, AsyncIterable<[K, V]>
{
  /** @internal */
  readonly state: TransactionState<K, V>;
  readonly #view: ReadView<K, V>;
  /** @internal The statements about derived keys. */
  readonly derivations: Derivations<K>;

  /** @internal Made by `store.transaction()`. */
  constructor(state: TransactionState<K, V>) {
    const { client, operations, reserved, snapshot } = state;
    this.derivations = new Derivations(reserved, operations.keys);
    this.state = state;
    this.#view = new ReadView(client, operations, { number: snapshot, refusal: undefined });
  }

  /**
   * The transaction in a part of the store: in a view of the same store, or in the keys that begin with a prefix, relative to this
   * transaction's own. See `at` of a store.
   *
   * @example
   * await db.transaction(async (tx) => {
   *   const user = await tx.at(users).get('ada');
   *   tx.at(posts).set(id, { by: user.name });
   * });
   */
  at<K2 = Key, V2 = V>(place: Place<K2, V2>, options?: ViewOptions<K2, V2>): Transaction<K2, V2> {
    const operations = new Operations(formatsAt(this.state.operations, place, options));
    return new Transaction({ ...this.state, operations, work: this.state.work.at(operations) });
  }

  async get(key: K, options?: WaitOptions): Promise<V | undefined> {
    checkWait(options);
    const plain = this.state.work.plain(key);
    const own = this.state.work.find(plain);
    if (own === undefined) return this.#view.get(plain, options);
    await this.state.blobs.read();
    return this.state.work.valueOf(own);
  }

  async getMany(keys: Iterable<K>, options?: WaitOptions): Promise<(V | undefined)[]> {
    checkWait(options);
    return Promise.all(Array.from(several(keys), (key) => this.get(key, options)));
  }

  async has(key: K, options?: WaitOptions): Promise<boolean> {
    checkWait(options);
    const plain = this.state.work.plain(key);
    return this.state.work.has(plain) ?? this.#view.has(plain, options);
  }

  async hasMany(keys: Iterable<K>, options?: WaitOptions): Promise<boolean[]> {
    checkWait(options);
    return Promise.all(Array.from(several(keys), (key) => this.has(key, options)));
  }

  /** The keys of a range, in order, as they are at this call: later writes do not change the result. */
  keys(options: ScanOptions<K> = {}): RangeIterator<K, K> {
    return this.#scan(scanKeys, options, keysOf(this.state.operations));
  }

  values(options: ScanOptions<K> = {}): RangeIterator<K, V> {
    return this.#scan(scanEntries, options, valuesOf(this.state.operations));
  }

  /**
   * The entries of a range, in the order of their keys. If a loop is left early, only the part that it walked counts as read.
   *
   * @example
   * for await (const [key, job] of tx.entries({ prefix: ['job'], limit: 1 })) tx.delete(key);
   */
  entries(options: ScanOptions<K> = {}): RangeIterator<K, [K, V]> {
    return this.#scan(scanEntries, options, entriesOf(this.state.operations));
  }

  /** All entries, in the order of their keys. */
  [Symbol.asyncIterator](): RangeIterator<K, [K, V]> {
    return this.entries();
  }

  async count(range: CountOptions<K> = {}): Promise<number> {
    const bounds = this.state.work.range(range, COUNT);
    const { signal } = range;
    if (this.state.work.countsAsSnapshot(bounds)) return this.#view.countBytes(bounds, signal);
    const cursor = this.#cursor(scanKeys, bounds, { signal })?.cursor;
    let count = 0;
    for (let batch = await cursor?.take(); batch !== undefined; batch = await cursor?.take()) {
      count += batch.count;
      signal?.throwIfAborted();
    }
    return count;
  }

  set(key: K, value: V, options?: Lifetime): void {
    this.state.work.set(key, value, options);
  }

  /** @internal Writes a value that is encoded already. */
  setEncoded(key: K, value: Uint8Array, lifetime?: Lifetime): void {
    this.state.work.setEncoded(key, value, lifetime);
  }

  /** @internal The lifetime of an entry as the transaction sees it. */
  async lifetime(key: K): Promise<Lifetime | undefined> {
    const own = this.state.work.find(key);
    return own === undefined ? { expiresAt: (await this.#view.getEntry(key))?.expiresAt } : own.lifetime;
  }

  /**
   * Replaces a value by the result of `change`, which gets undefined for an absent key. The entry keeps its expiry, unless `options`
   * has one. Concurrent updates of one key run one after another.
   */
  async update(
    key: K,
    change: (value: OldValue<V>) => V | PromiseLike<V>,
    options: UpdateLifetime = {},
  ): Promise<void> {
    checkOptions(options, LIFETIME);
    const given = itemOf(options) ?? {};
    const work = this.state.work;
    const bytes = work.encode(key);
    // A copy of the key: the caller may change its own meanwhile.
    const same = this.state.operations.keys.read(bytes, 0, bytes.length);
    let isOvertaken = false;
    const attempt = async (call: Call): Promise<void> => {
      isOvertaken = false;
      const own = work.find(same);
      const entry = own === undefined ? await this.#view.getEntry(same) : undefined;
      if (own !== undefined) await this.state.blobs.read();
      const value = await call(() => change(own === undefined ? entry?.value : work.valueOf(own)));
      isOvertaken = work.find(same) !== own;
      if (isOvertaken) throw overtaken();
      this.set(same, value, lifetimeOf(given, own?.lifetime ?? entry));
    };
    return inTurn({ owner: work.owner, key: textOfBytes(bytes) }, attempt, { is: () => isOvertaken });
  }

  delete(key: K, options?: undefined): void {
    this.state.work.delete(key, options);
  }

  deleteRange(range: KeyRange<K>): void {
    this.state.work.deleteRange(range);
  }

  clear(): void {
    this.state.work.clear();
  }

  #scan<T>(operations: ScanOperations, options: ScanOptions<K>, unpack: Unpack<T>): RangeIterator<K, T> {
    let opened: { readonly scan: OverlayScan; readonly cursor: BatchSource } | undefined;
    const own = this.state.work.writes();
    const open = (part: ByteRange, course: Course): BatchSource | undefined => {
      opened = this.#cursor(operations, part, course, own);
      return opened?.cursor;
    };
    const noted: Unpack<T> = (batch) => {
      const item = unpack(batch);
      const scan = opened?.scan;
      return (i) => {
        scan?.reached(batch, i);
        return item(i);
      };
    };
    const range = this.state.work.range(options, SCAN);
    return new ScanIterator({ range, course: options, keys: this.state.operations.keys, open }, noted);
  }

  /** Opens a scan; undefined for a scan without results. */
  #cursor(operations: ScanOperations, bounds: ByteRange, { reverse = false, limit, signal }: Course, own?: OwnWrites) {
    const { client } = this.state;
    const { parts } = operations;
    const scan = this.state.work.scan(bounds, { reverse, limit }, parts.values, own);
    client.ensureOpen();
    signal?.throwIfAborted();
    if (scan === undefined) return undefined;
    const request = { reverse, limit: scan.limit, snapshot: this.state.snapshot, ...parts };
    const batchBytes = firstBatchBytes(limit);
    const cursor = scan.asksStore
      ? new Cursor(client, operations, { ...request, range: bounds, batchBytes })
      : undefined;
    const overlaid = new OverlayCursor(scan, cursor, this.state.blobs);
    scan.atEnd(() => overlaid.close());
    return { scan, cursor: overlaid };
  }
}

const getReserved: Operation<Uint8Array, undefined, Uint8Array | undefined> = {
  code: Op.get,
  key: rawBytes,
  value: undefined,
  read: ({ status, bytes, start, end }) => (status === Status.missing ? undefined : bytes.slice(start, end)),
};

/**
 * Runs a function in a transaction. It runs the function again while there is a conflict, or while the snapshot is lost with the tab
 * that led the store. Transactions of one store that conflicted over the same key run one after another: each succeeds at its second
 * attempt, unless somebody else writes that key.
 */
export async function runTransaction<K, V, T>(
  parts: UpdateParts<K, V>,
  run: (tx: Transaction<K, V>, reserved: Reserved) => T | PromiseLike<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const { retries = RETRIES_DEFAULT, signal } = options;
  checkRetries(retries);
  let turn: Turn | undefined;
  try {
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      let key: string | undefined;
      try {
        return await runOnce(parts, run, signal, turn);
      } catch (error) {
        if (!isConflict(error) || attempt > retries) {
          throw namedConflict(error, parts.operations.keys, lastConflict(attempt));
        }
        if (error instanceof EngineConflict) key = textOfBytes(error.keyBytes);
      }
      await backOff(attempt, signal);
      if (key !== undefined && (turn?.key !== key || turn.isOver)) {
        // Never two turns at a time: no call waits for a turn while it has one.
        turn?.end();
        turn = await Turn.of({ owner: parts.client, key, signal });
      }
    }
  } finally {
    turn?.end();
  }
}

/** Upgrades a store to a version, with the writes of `upgrade`, in one transaction. */
export function runUpgrade<K, V>(
  parts: UpdateParts<K, V>,
  name: string,
  version: number,
  upgrade: Upgrade<K, V> | undefined,
  options: WaitOptions,
): Promise<void> {
  const run = async (tx: Transaction<K, V>, reserved: Reserved): Promise<void> => {
    const [stored, stated] = await Promise.all([reserved.get(VERSION_KEY), reserved.get(DERIVED_KEY)]);
    const versions = upgradeOf(name, stored, version);
    if (versions === undefined) return;
    await upgrade?.(tx, versions);
    markWritten(stated, reserved);
    reserved.set(VERSION_KEY, versionBytes(version));
  };
  return runTransaction(parts, run, options);
}

async function runOnce<K, V, T>(
  parts: UpdateParts<K, V>,
  run: (tx: Transaction<K, V>, reserved: Reserved) => T | PromiseLike<T>,
  signal: AbortSignal | undefined,
  turn: Turn | undefined,
): Promise<T> {
  const { client, operations, level } = parts;
  client.ensureOpen();
  const number = client.numbers.ofSnapshot();
  const taken = takeSnapshot({ client, number });
  /** Why there is no snapshot. This is more useful than the error of reads that find no snapshot. */
  let refusal: unknown;
  taken.catch((error) => {
    refusal = error;
  });
  const blobs = new BlobSink(512);
  const work = new Workspace(operations, blobs);
  const reserved = work.reserved((key) => client.submit(getReserved, key, undefined, levelOfSnapshot(number)));
  const state: TransactionState<K, V> = { ...parts, blobs, work, snapshot: number, reserved };
  let result: T;
  try {
    const running = (async () => run(new Transaction(state), reserved))();
    const ended = untilAborted(running, signal);
    result = await (turn === undefined ? ended : turn.during(ended));
    const batch = work.end();
    // The transaction has ended: the bytes are read into the batch as it is.
    if (batch !== undefined) await readBlobs(client, blobs, signal);
    // In one frame with the end of the snapshot: the engine releases the snapshot after the batch.
    if (batch !== undefined) {
      state.committed = client.submit(batchOperation, undefined, batch, level | levelOfSnapshot(number), signal);
    }
  } catch (error) {
    throw refusal ?? error;
  } finally {
    work.close();
    void releaseSnapshot({ client, number });
  }
  await Promise.all([taken, state.committed]);
  return result;
}

// Updates are loaded together with transactions: they use the same code.
export { update } from './update.ts';
