/**
 * A view: a part of an asynchronous store, with its own keys and values. The store itself is a view of everything.
 *
 * Invariant: operations take effect in the order of their calls; the operations of one turn are sent together, and reads see
 * the writes called before them. Updates and transactions are several operations: those called meanwhile may be between them. A view
 * has no data and no state: the data is in the engine behind its client.
 */

import type { Place, Writes } from '../api.ts';
import type {
  ChangeIterator,
  ChangesOptions,
  Live,
  LiveCount,
  LiveOptions,
  LiveRange,
  WatchOptions,
} from '../changes/types.ts';
import type { Client } from '../client/client.ts';
import { batchOperation, deleteRange, Operations, syncOperation } from '../client/operations.ts';
import { formatsAt } from '../codec/formats.ts';
import { conditionOf, itemOf } from '../codec/item.ts';
import { type ByteRange, encodeRange, halfOpen } from '../codec/range.ts';
import {
  addAll,
  BEGIN,
  checkAs,
  checkLimit,
  checkOptions,
  DELETE,
  durabilityOf,
  isRange,
  type Known,
  RANGE,
  SET,
  TRANSACTION,
  UPDATE,
  WAIT,
} from '../options.ts';
import { namedConflict } from '../protocol/conflict.ts';
import { levelNumber } from '../protocol/frame.ts';
import type { Operation } from '../protocol/frame-writer.ts';
import type {
  BeginOptions,
  DeleteOptions,
  DeleteReceipt,
  Key,
  KeyRange,
  OldValue,
  Receipt,
  SetOptions,
  TransactionOptions,
  UpdateOptions,
  ViewOptions,
  WaitOptions,
  WriteOptions,
} from '../types.ts';
import { Batch } from './batch.ts';
import type { TransactionHandle } from './begin.ts';
import { ChangesIterator, changesNow, checkSince, type LiveRun, liveQuery } from './following.ts';
import type { LiveTarget } from './live.ts';
import { loaders } from './loaders.ts';
import { ReadView } from './read-view.ts';
import { Snapshot } from './snapshot.ts';
import type { Transaction } from './transaction.ts';
import type { UpdateParts } from './update.ts';

const WATCH: Known<WatchOptions> = { ...WAIT, keysOnly: 1 };
const CHANGES: Known<ChangesOptions<never>> = { ...RANGE, ...WATCH, since: 1 };
const LIVE_COUNT: Known<LiveCount<never>> = { ...RANGE, as: 1 };
const LIVE: Known<LiveRange<never>> = { ...LIVE_COUNT, reverse: 1, limit: 1 };
const FIRST: Known<LiveOptions<unknown>> = { initial: 1 };
const LIVE_READ: Known<KeyRange & LiveOptions<unknown>> = { ...RANGE, ...FIRST };

/** The query of a live query: a key, a range, or a function that reads a snapshot. */
type LiveGiven<K, V> = K | LiveRange<K> | LiveCount<K> | ((view: Snapshot<K, V>) => unknown);

/** The module for updates and transactions, once it is loaded. */
let loaded: typeof import('./transaction.ts') | undefined;
/** The module for transaction handles, once it is loaded. */
let beginning: typeof import('./begin.ts') | undefined;

/**
 * A part of a store, made by `store.at()`: the calls about keys, with keys relative to the part. The store itself is the view of
 * everything. It is closed with its store.
 *
 * @example
 * const users = db.at<string, User>(['user']);
 * await users.set('ada', { born: 1815 });
 */
export class View<K, V> extends ReadView<K, V> implements Writes<K, V> {
  /** @internal The number of its durability level. */
  readonly level: number;

  /** @internal Made by `at`. */
  constructor(client: Client, operations: Operations<K, V>, level: number) {
    super(client, operations, { number: 0, refusal: undefined });
    this.level = level;
  }

  /**
   * A view of a part of the store: of all keys that begin with `prefix`, an array. It has keys and values of its own, and all calls about
   * keys. Nothing is opened or copied, so views are cheap.
   *
   * A key of the view is what follows the prefix: in a view of `['user']` the key `'ada'` is `['user', 'ada']` of the store, the key
   * `['ada', 1]` is `['user', 'ada', 1]`, and `[]` is `['user']`. `'ada'` and `['ada']` are the same key of a view, and reads return
   * `'ada'`. Keys are in the order of the store. Ranges, `clear()`, changes and conflicts are those of the view. With a key codec,
   * the codec returns the keys of the view. Without one, keys are Varve keys; without a codec for values, values are as outside.
   * `at([])` is the whole store, or view, with other codecs.
   *
   * Throws `VARVE_INVALID_KEY` for an element of the prefix that cannot be in a key, and `VARVE_INVALID_ARGUMENT` for a prefix that is not
   * an array, for invalid options, and for a view of another store.
   *
   * @example
   * const users = db.at<string, User>(['user'], { values: json.as<User>() });
   * await users.set('ada', { born: 1815 }); // ['user', 'ada'] in the store
   * for await (const [name, user] of users.entries({ gte: 'a', lt: 'b' })) show(name, user);
   * await users.clear(); // only the users
   * const tags = db.at(['tag']);
   * await db.transaction(async (tx) => {
   *   if (await tx.at(users).has('ada')) tx.at(tags).set('first', 'ada');
   * });
   */
  override at<K2 = Key, V2 = V>(place: Place<K2, V2>, options?: ViewOptions<K2, V2>): View<K2, V2> {
    return new View(this.client, new Operations(formatsAt(this.formats, place, options)), this.level);
  }

  set(key: K, value: V, options?: SetOptions): Promise<Receipt> {
    const item = itemOf(options);
    if (item === undefined) return this.#write(this.formats.set, key, value, options, SET);
    return this.#collected((batch) => batch.set(key, value, item), options, SET);
  }

  /**
   * Replaces a value by the result of `change`. It reads the value, calls `change` (with undefined for an absent key), and writes the
   * result, unless somebody else wrote the key meanwhile. In that case it waits a short time, reads, and calls `change` again: 100 times
   * at most (about ten seconds). Then it rejects with `VARVE_CONFLICT`. Updates of one store for the same key run in their order, one at
   * a time. Other calls do not wait for an update: a `delete` that is called before it has resolved may take effect first, and `change`
   * then makes a value out of undefined. So await an update before a call that depends on it. The entry keeps its expiry; `expiresIn` or
   * `expiresAt` replaces it, `expiresIn: null` removes it.
   *
   * `change` may be asynchronous. Other updates of the same key wait for it, but only for a second: then they go ahead, and `change` is
   * called again. `change` must not update that key itself.
   *
   * @example
   * await db.update('visits', (visits = 0) => visits + 1);
   * await db.update(['session', id], (session) => ({ ...session, seen: Date.now() })); // still expires when it did
   */
  async update(key: K, change: (value: OldValue<V>) => V | PromiseLike<V>, options?: UpdateOptions): Promise<Receipt> {
    const parts = this.transactionParts(options, UPDATE);
    const bytes = this.formats.keys.encode(key);
    // A copy: the caller may change its options, and their Date, for its next call.
    const given = { ...itemOf(options), signal: options?.signal };
    // Once it is loaded, an update begins within the call: so an update that is called from another update's function is recognized.
    loaded ??= await loaders.transactions();
    return loaded.update(parts, bytes, change, given);
  }

  setMany(entries: Iterable<readonly [K, V]>, options?: WriteOptions): Promise<Receipt> {
    return this.#collected((batch) => addAll(batch, entries), options);
  }

  delete(key: K, options: DeleteOptions & { existed: true }): Promise<DeleteReceipt>;
  delete(key: K, options?: DeleteOptions): Promise<Receipt>;
  delete(key: K, options?: DeleteOptions): Promise<Receipt> {
    const condition = conditionOf(options);
    if (condition === undefined) {
      const operation = options?.existed ? this.formats.deleteAsking : this.formats.delete;
      return this.#write(operation, key, undefined, options, DELETE);
    }
    const receipt = this.#collected((batch) => batch.delete(key, condition), options, DELETE);
    // The condition was true.
    return options?.existed ? receipt.then((found) => ({ ...found, existed: condition.ifSequence !== null })) : receipt;
  }

  async deleteRange(range: KeyRange<K>, options?: WriteOptions): Promise<Receipt> {
    return this.batch().deleteRange(range).commit(options);
  }

  clear(options?: WriteOptions): Promise<Receipt> {
    const { start, end } = halfOpen(encodeRange({}, this.formats.keys));
    return this.#write(deleteRange, start, end, options);
  }

  batch(): Batch<K, V> {
    return this.#batch();
  }

  /**
   * Runs a function that reads and writes, as one step. All its reads have the same read point, and all its writes are applied
   * together. They are applied only if nobody else has written the keys and ranges that it read. So transactions are serializable. On
   * a conflict the function is called again, with a new read point, after a short wait: up to `retries` times (100). Then it rejects
   * with `VARVE_CONFLICT`, which names the key. So the function must do nothing that cannot be done twice. Transactions of one store
   * that conflicted over a key continue one by one.
   *
   * The function may wait for anything, also a `fetch`: it blocks nobody. If it throws, its writes are discarded and the error is
   * passed on. A transaction that only reads never conflicts. Time stands still in it: an entry that expires meanwhile is still there,
   * and that is no conflict. Calls on the store itself inside the function are not part of the transaction; if they write a key that
   * the transaction has read, the transaction conflicts with itself.
   *
   * @example
   * const left = await db.transaction(async (tx) => {
   *   const stock = (await tx.get(['stock', item])) ?? 0;
   *   if (stock < 1) throw new Error('sold out');
   *   tx.set(['stock', item], stock - 1);
   *   return stock - 1;
   * });
   */
  async transaction<T>(run: (tx: Transaction<K, V>) => T | PromiseLike<T>, options?: TransactionOptions): Promise<T> {
    const parts = this.transactionParts(options, TRANSACTION);
    // Once it is loaded, a transaction begins within the call. To import it again would take as long as a call of the engine.
    loaded ??= await loaders.transactions();
    return loaded.runTransaction(parts, run, options);
  }

  /**
   * Begins a transaction that ends when you call `commit()` or `rollback()` of it, for code that cannot be one function. Everything that
   * holds for `transaction` holds for it, except that it is not run again: on a conflict `commit()` rejects with `VARVE_CONFLICT`.
   *
   * With `exclusive: true` it waits until no other exclusive transaction of the store is open, in any tab. So those that are all
   * exclusive never conflict with each other. Others are not stopped: a write outside of them can still be a conflict. The transaction
   * that waits for itself (a second exclusive one, begun before the first one has ended) waits for ever: give it a `signal`.
   *
   * The signal also rolls the transaction back when it aborts later. Rejects with `VARVE_CLOSED` if the store is closed, with
   * `VARVE_INVALID_ARGUMENT` for invalid options, and with the signal's `reason`.
   *
   * @example
   * await using tx = await db.begin({ exclusive: true, signal: AbortSignal.timeout(10_000) });
   * const balance = (await tx.get('balance')) ?? 0;
   * tx.set('balance', balance - (await price()));
   * await tx.commit();
   */
  async begin(options?: BeginOptions): Promise<TransactionHandle<K, V>> {
    const parts = this.transactionParts(options, BEGIN);
    beginning ??= await loaders.begin();
    return beginning.beginTransaction(parts, options);
  }

  /**
   * Takes a snapshot, and returns at once: every read of it sees the store as it is at this call, with the writes called before and
   * without those called later. It keeps the memory and the files of that read point: close it, or let `await using` do that. A snapshot
   * that you do not close is closed when it is garbage collected. `stats()` reports how many are open and the age of the oldest. If the
   * engine cannot take it, its reads reject. At most 65,535 can be open.
   *
   * @example
   * await using before = db.snapshot();
   * await db.clear();
   * await before.count(); // as many as there were
   */
  snapshot(): Snapshot<K, V> {
    return new Snapshot(this.client, this.formats);
  }

  /**
   * Iterates over the changes that any tab commits after this call, or after the sequence `since`: every change once, in the order of
   * the sequences. The iterator ends only when the loop is left, when its signal aborts (with the signal's `reason`), or when the store is closed
   * (`VARVE_CLOSED`). A slow consumer keeps only its position: nobody waits for it. To continue after a reload, pass the sequence of the
   * last change that you handled. The history goes as far back as `open({ historyBytes })` allows. If a part of it is gone, you get a
   * change of the type `gap`: then read again the data that you keep.
   *
   * @example
   * for await (const change of db.changes({ since: last, prefix: ['note'], signal })) {
   *   if (change.type === 'gap') await readAll();
   *   else await apply(change); // 'set', 'delete' or 'deleteRange'
   *   last = change.sequence;
   * }
   */
  changes(options: ChangesOptions<K> & { keysOnly: true }): ChangeIterator<K, undefined>;
  changes(options?: ChangesOptions<K>): ChangeIterator<K, V>;
  changes(options: ChangesOptions<K> = {}): ChangeIterator<K, V | undefined> {
    return this.#follow(encodeRange(options, this.formats.keys, CHANGES), options);
  }

  /**
   * Iterates over the changes of one key or a range that are committed after this call: `changes` without `since`. An object that has
   * only fields of a range is a range; anything else is a key.
   *
   * @example
   * for await (const change of db.watch(['note', 42], { signal })) render(change);
   * for await (const { type } of db.watch({ prefix: ['note'] }, { keysOnly: true, signal })) refresh(type);
   */
  watch(target: K | KeyRange<K>, options: WatchOptions & { keysOnly: true }): ChangeIterator<K, undefined>;
  watch(target: K | KeyRange<K>, options?: WatchOptions): ChangeIterator<K, V>;
  watch(target: K | KeyRange<K>, options: WatchOptions = {}): ChangeIterator<K, V | undefined> {
    checkOptions(options, WATCH);
    const { keysOnly, signal } = options;
    const range = isRange<K, KeyRange<K>>(target, this.formats.keys.codec) ? target : this.#only(target);
    return this.#follow(encodeRange(range, this.formats.keys), { keysOnly, signal });
  }

  /**
   * A live query: the value of a key, the entries of a range, or the result of a function that reads a snapshot. It is kept up to date
   * while somebody is subscribed. It is a store for Svelte, and it fits `useSyncExternalStore` of React. A function runs again when a
   * key of its range has changed; by default, when any key has changed. Many changes in a row run a query once. The expiry of an entry
   * is not a change. The value is `initial` until the first result. `update` replaces the query, and keeps the last value until the
   * new query has one.
   *
   * @example
   * const notes = db.live({ prefix: ['note'], reverse: true, limit: 20 }, { initial: [] }); // [key, value][]
   * const stop = notes.subscribe((entries) => render(entries));
   * notes.update({ prefix: ['note'], limit: 50 });
   * const open = db.live({ prefix: ['todo'], as: 'count' });
   * const sum = db.live(async (view) => total(await view.getMany(['a', 'b'])), { gte: 'a', lte: 'b', initial: 0 });
   */
  live<T, I extends T | undefined = undefined>(
    query: (view: Snapshot<K, V>) => T | PromiseLike<T>,
    range?: KeyRange<K> & LiveOptions<I>,
  ): Live<T | Extract<I, undefined>, [query: (view: Snapshot<K, V>) => T | PromiseLike<T>, range?: KeyRange<K>]>;
  live<I extends number | undefined = undefined>(
    query: LiveCount<K>,
    options?: LiveOptions<I>,
  ): Live<number | Extract<I, undefined>, [query: LiveCount<K>]>;
  live<I extends K[] | undefined = undefined>(
    query: LiveRange<K> & { as: 'keys' },
    options?: LiveOptions<I>,
  ): Live<K[] | Extract<I, undefined>, [query: LiveRange<K> & { as: 'keys' }]>;
  live<I extends V[] | undefined = undefined>(
    query: LiveRange<K> & { as: 'values' },
    options?: LiveOptions<I>,
  ): Live<V[] | Extract<I, undefined>, [query: LiveRange<K> & { as: 'values' }]>;
  live<I extends [K, V][] | undefined = undefined>(
    query: LiveRange<K> & { as?: 'entries' | undefined },
    options?: LiveOptions<I>,
  ): Live<[K, V][] | Extract<I, undefined>, [query: LiveRange<K> & { as?: 'entries' | undefined }]>;
  live<I extends [K, V][] | K[] | V[] | undefined = undefined>(
    query: LiveRange<K>,
    options?: LiveOptions<I>,
  ): Live<[K, V][] | K[] | V[] | Extract<I, undefined>, [query: LiveRange<K>]>;
  live(key: K, options?: LiveOptions<V | undefined>): Live<V | undefined, [key: K]>;
  live(query: LiveGiven<K, V>, options?: KeyRange<K> & LiveOptions<unknown>): Live<unknown> {
    const prepare = (given: LiveGiven<K, V>, watched: KeyRange<K> = {}): LiveRun => {
      const isFunction = typeof given === 'function';
      const isOfRange = isRange<K, LiveRange<K>>(given as K, this.formats.keys.codec, LIVE);
      if (!isFunction) checkOptions(watched, FIRST);
      const range: KeyRange<K> & LiveTarget = isFunction
        ? watched
        : isOfRange
          ? (given as LiveRange<K> | LiveCount<K>)
          : this.#only(given as K);
      // The range is encoded here, at the call, not when the query runs.
      const { as, reverse, limit } = range;
      checkAs(as);
      // Here, too: `update` with a wrong limit put the query away that was there, and its subscriptions ended.
      checkLimit(limit);
      const known = isFunction ? LIVE_READ : as === 'count' ? LIVE_COUNT : LIVE;
      const bytes = encodeRange(range, this.formats.keys, known);
      const query = given as (view: Snapshot<K, V>) => unknown;
      const target = isFunction ? query : isOfRange ? { as, reverse, limit } : undefined;
      const operations = this.formats;
      const wanted = { client: this.client, store: this, operations, target, bytes, now: changesNow };
      return async (emit, signal) => (await loaders.live()).keepLive(wanted, emit, signal);
    };
    return liveQuery(prepare, options?.initial, query, options);
  }

  /**
   * Returns the value of a key at once, if it is in this tab's cache and is the newest one; otherwise undefined. So a function that
   * renders can use it. The cache has what was read or written here shortly before: see `open({ cache })`. Throws for an invalid key.
   *
   * @example
   * const note = db.peek(['note', id]) ?? placeholder;
   */
  peek(key: K): V | undefined {
    return this.client.keeper?.peek(this.formats, key);
  }

  /**
   * Flushes all writes acknowledged so far, so that they are as durable as `strict` writes.
   *
   * @example
   * await db.setMany(rows);
   * await db.flush();
   */
  async flush(options?: WaitOptions): Promise<void> {
    checkOptions(options, WAIT);
    return this.client.submit(syncOperation, undefined, undefined, 0, options?.signal);
  }

  #follow(range: ByteRange, { keysOnly = false, signal, since }: ChangesOptions<K>): ChangeIterator<K, V> {
    if (since !== undefined) checkSince(since);
    this.client.ensureOpen();
    signal?.throwIfAborted();
    const wanted = { range, since: since ?? this.#now(), keysOnly, signal };
    const parts = { client: this.client, operations: this.formats };
    return new ChangesIterator(loaders.changes().then(({ follow }) => follow(parts, wanted)));
  }

  /** The range of one key. */
  #only(key: K): { gte: K; lte: K } {
    const plain = this.formats.keys.plain(key);
    return { gte: plain, lte: plain };
  }

  /** The sequence of the store at this call. */
  #now(): Promise<number> {
    const sequence = this.client.submit(changesNow, undefined, undefined, 0);
    // A caller that waits for it gets the error.
    sequence.catch(() => undefined);
    return sequence;
  }

  /** Starts a batch; `known` has the options that its commit takes. */
  #batch(known?: Known<WriteOptions>): Batch<K, V> {
    return new Batch(this.formats, async (end, options) => {
      const level = this.#levelOf(options, known);
      try {
        return await this.client.submit(batchOperation, undefined, end(), level, options?.signal);
      } catch (error) {
        throw namedConflict(error, this.formats.keys);
      }
    });
  }

  /** Commits a batch of the writes that `collect` adds. */
  async #collected(
    collect: (batch: Batch<K, V>) => Batch<K, V>,
    options?: WriteOptions,
    known?: Known<WriteOptions>,
  ): Promise<Receipt> {
    return collect(this.#batch(known)).commit(options);
  }

  /** @internal The parts that transactions and updates use. */
  transactionParts(options: WriteOptions | undefined, known: Known<WriteOptions>): UpdateParts<K, V> {
    const level = this.#levelOf(options, known);
    return { client: this.client, operations: this.formats, level };
  }

  #write<A, B>(
    operation: Operation<A, B, Receipt>,
    key: A,
    value: B,
    options?: WriteOptions,
    known?: Known<WriteOptions>,
  ): Promise<Receipt> {
    try {
      return this.client.submit(operation, key, value, this.#levelOf(options, known), options?.signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The number of the durability level of a write. Throws for invalid options. */
  #levelOf(options: WriteOptions | undefined, known?: Known<WriteOptions>): number {
    const durability = durabilityOf(options, known);
    return durability === undefined ? this.level : levelNumber(durability);
  }
}
