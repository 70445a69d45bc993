/**
 * A store in other objects: in one (`connect`), or spread over several by key (`shards`).
 *
 * Invariant: a key is in one shard, which `Rendezvous` chooses by its encoded bytes. One call to one shard is atomic and has one
 * read point. Calls to several shards are not atomic and have no common read point. There is no state here: any number of Workers
 * may use such a store at the same time.
 */

import type { Reads, Writes } from '../api.ts';
import type { ObjectNamespace } from '../cloudflare/platform.ts';
import {
  type BatchItem,
  type KeysRequest,
  type StoreAnswers,
  type StoreReply,
  type StoreRequest,
  unwrap,
} from '../cloudflare/rpc.ts';
import { checkItem, conditionOf } from '../codec/item.ts';
import { KeyFormat } from '../codec/key-format.ts';
import { encodeDeletion, encodeRange } from '../codec/range.ts';
import { invalid, VarveError } from '../errors.ts';
import {
  addAll,
  COUNT,
  checkLimit,
  checkOptions,
  checkWait,
  DELETE,
  durabilityOf,
  type Known,
  SCAN,
  SET,
  several,
} from '../options.ts';
import { allOf } from '../runtime/all-of.ts';
import { asyncDispose } from '../runtime/dispose.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import type {
  CountOptions,
  DeleteOptions,
  DeleteReceipt,
  Entry,
  Key,
  KeyCodec,
  KeyRange,
  Receipt,
  ScanOptions,
  SetOptions,
  StoreIterator,
  WaitOptions,
  WriteOptions,
} from '../types.ts';
import { mergedScan, type ScanSource, type ShardEntry } from './paged-scan.ts';
import {
  RemoteBatch,
  SHARD_WRITE,
  type ShardParts,
  type ShardReceipt,
  type ShardWriteOptions,
} from './remote-batch.ts';
import { Rendezvous } from './rendezvous.ts';

/** The iterator over a range of such a store. */
export interface RemoteIterator<T> extends StoreIterator<T> {
  /** All items that are left, in order. They are in memory together: read a long range with `for await`. */
  toArray(): Promise<T[]>;
}

/** Options of `connect` and `shards`. */
export interface RemoteOptions<K = Key> {
  /** The key codec of the objects, if they have one. */
  keys?: KeyCodec<K> | undefined;
}

/** The objects that are the shards: either `count` or `names`. */
export interface ShardOptions<K = Key> extends RemoteOptions<K> {
  /** The number of shards, named `shard-0`, `shard-1`, ...: an integer from 1. */
  count?: number | undefined;
  /** The names of the shards, instead of `count`. */
  names?: readonly string[] | undefined;
}

const REMOTE: Known<RemoteOptions> = { keys: 1 };
const SHARDS: Known<ShardOptions> = { ...REMOTE, count: 1, names: 1 };

/** The part of an object's stub that is used. */
interface StoreStub<K, V> {
  varve(request: StoreRequest<K, V>): Promise<StoreReply>;
}

/** A request about keys. */
type KeyCall = KeysRequest<unknown>['call'];

/**
 * A store in one object or several. Made by `connect` and `shards`. A call sends one request to each shard that it needs. Each shard has
 * its own sequences and read points. A scan reads pages: each page has one read point of its shard, and the next page has a later one.
 * With a `limit`, no shard is asked for more entries than that. Values of a shard that take more than 16 MiB come in parts, as pages do.
 *
 * `R` is the result of writes that may go to several shards: one receipt for a store of `connect`, as in other stores; for one of `shards`
 * a receipt of each shard that they were sent to.
 */
export class RemoteStore<K = Key, V = unknown, R = ShardReceipt | ShardReceipt[]>
  implements Reads<K, V>, Pick<Writes<K, V>, 'set' | 'delete'>
{
  /** The names of its shards, sorted; one empty name for `connect`. */
  readonly names: readonly string[];
  readonly #places: Rendezvous;
  readonly #stub: (name: string) => object;
  readonly #keys: KeyFormat<K>;
  /** Whether it was made for one object: then a write has one receipt. */
  readonly #isOne: boolean;
  /** The prefix of a view. */
  readonly #prefix: readonly Key[] | undefined;

  /** @internal */
  constructor(
    names: readonly string[],
    stub: (name: string) => object,
    keys: KeyFormat<K>,
    isOne: boolean,
    prefix?: readonly Key[],
  ) {
    this.#places = new Rendezvous(names);
    this.names = this.#places.names;
    this.#stub = stub;
    this.#keys = keys;
    this.#isOne = isOne;
    this.#prefix = prefix;
  }

  get(key: K, options?: WaitOptions): Promise<V | undefined> {
    return this.#one('get', key, options);
  }

  getMany(keys: Iterable<K>, options?: WaitOptions): Promise<(V | undefined)[]> {
    return this.#many('get', keys, options);
  }

  getEntry(key: K, options?: WaitOptions): Promise<Entry<V> | undefined> {
    return this.#one('getEntry', key, options);
  }

  /**
   * The entries of the first of these keys in its first shard: as many as are sent at once, at least one.
   * @internal
   */
  getFirstEntries(keys: readonly K[]): Promise<(Entry<V> | undefined)[]> {
    return this.#call(0, { call: 'getEntry', keys, part: true }, undefined) as Promise<StoreAnswers<K, V>['getEntry']>;
  }

  has(key: K, options?: WaitOptions): Promise<boolean> {
    return this.#one('has', key, options);
  }

  hasMany(keys: Iterable<K>, options?: WaitOptions): Promise<boolean[]> {
    return this.#many('has', keys, options);
  }

  async set(key: K, value: V, options?: SetOptions): Promise<ShardReceipt> {
    return this.#writeOne(key, ['set', key, value, checkItem(options)], options, SET);
  }

  /** Sets the values of several keys, all or none in each shard. */
  async setMany(entries: Iterable<readonly [K, V]>, options?: ShardWriteOptions): Promise<R> {
    return addAll(this.batch(), entries).commit(options);
  }

  delete(key: K, options: DeleteOptions & { existed: true }): Promise<ShardReceipt & DeleteReceipt>;
  delete(key: K, options?: DeleteOptions): Promise<ShardReceipt>;
  async delete(key: K, options?: DeleteOptions): Promise<ShardReceipt> {
    const condition = conditionOf(options);
    checkItem(condition);
    if (options?.existed) {
      durabilityOf(options, DELETE);
      const shard = this.#shardOf(key);
      const receipt = await this.#call(shard, { call: 'deleteAsking', key, condition }, options.signal);
      return { ...receipt, ...this.#receiptOf(shard, receipt) };
    }
    return this.#writeOne(key, ['delete', key, condition], options, DELETE);
  }

  /** Deletes every key of a range, in all shards. A range without bounds is refused. */
  async deleteRange(range: KeyRange<K>, options?: ShardWriteOptions): Promise<R> {
    return this.batch().deleteRange(range).commit(options);
  }

  /** Deletes everything, in all shards. In a view, everything in the view. */
  async clear(options: ShardWriteOptions = {}): Promise<R> {
    durabilityOf(options, SHARD_WRITE);
    const shards = [...this.names.keys()];
    return this.#writeEach(shards, options, (shard) => this.#call(shard, { call: 'clear' }, options.signal));
  }

  /** Collects writes that are sent together. */
  batch(): RemoteBatch<K, V, R> {
    return new RemoteBatch<K, V, R>({
      shardsOf: (item) => {
        if (item[0] !== 'deleteRange') return [this.#shardOf(item[1])];
        encodeDeletion(item[1], this.#keys);
        return this.names.keys();
      },
      send: (parts, options) => this.#commit(parts, options),
    });
  }

  keys(options: ScanOptions<K> = {}): RemoteIterator<K> {
    return this.#scan(options, false, ({ key }) => key);
  }

  values(options: ScanOptions<K> = {}): RemoteIterator<V> {
    return this.#scan(options, true, ({ value }) => value as V);
  }

  entries(options: ScanOptions<K> = {}): RemoteIterator<[K, V]> {
    return this.#scan(options, true, ({ key, value }) => [key, value as V]);
  }

  /** Counts the keys of a range, in all shards. Too high while a `rebalance` is not complete: keys that are in two shards count twice. */
  async count(range: CountOptions<K> = {}): Promise<number> {
    encodeRange(range, this.#keys, COUNT);
    const { signal, ...keys } = range;
    const request = { call: 'count', range: keys } as const;
    const counts = await Promise.all(this.names.map((_, shard) => this.#call(shard, request, signal)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** The name of the shard of a key. */
  shardOf(key: K): string {
    return this.names[this.#shardOf(key)] ?? '';
  }

  /** One of its shards as a store. */
  shard(name: string): RemoteStore<K, V, ShardReceipt> {
    if (!this.names.includes(name)) throw invalid(`There is no shard ${name}.`);
    return new RemoteStore([name], this.#stub, this.#keys, true, this.#prefix);
  }

  /**
   * A view of a part of it: of all keys that begin with `prefix`. Its keys are Varve keys, and its values are those of the objects. See
   * `at` of `varve`.
   *
   * @example
   * const users = db.at<string, User>(['user']);
   * await users.set('ada', { born: 1815 }); // ['user', 'ada'] in the store
   */
  at<K2 = Key, V2 = V>(prefix: readonly Key[]): RemoteStore<K2, V2, R> {
    const keys = this.#keys.at<K2>(prefix, undefined);
    return new RemoteStore(this.names, this.#stub, keys, this.#isOne, keys.prefix);
  }

  #shardOf(key: K): number {
    return this.names.length === 1 ? 0 : this.#places.shardOf(this.#keys.encode(key));
  }

  #scan<T>(options: ScanOptions<K>, values: boolean, item: (entry: ShardEntry<K, V>) => T): RemoteIterator<T> {
    encodeRange(options, this.#keys, SCAN);
    const { signal, ...range } = options;
    checkLimit(range.limit);
    signal?.throwIfAborted();
    const source: ScanSource<K, V> = {
      signal,
      shards: this.names.map((_, shard) => shard),
      page: (shard, part) => this.#call(shard, { call: 'page', range: part, values }, signal),
      encode: (key) => this.#keys.encode(key),
      owner: (bytes) => this.#places.shardOf(bytes),
    };
    const items = mergedScan(source, range, item);
    const end = async (): Promise<void> => void (await items.return(undefined));
    return Object.assign(items, { toArray: () => allOf(items), [asyncDispose]: end });
  }

  async #call<Q extends StoreRequest<K, V>>(
    shard: number,
    request: Q,
    signal: AbortSignal | undefined,
  ): Promise<StoreAnswers<K, V>[Q['call']]> {
    signal?.throwIfAborted();
    const stub = this.#stub(this.names[shard] ?? '') as StoreStub<K, V>;
    const prefix = this.#prefix;
    const sent: StoreRequest<K, V> = prefix === undefined ? request : { call: 'at', prefix, request };
    return unwrap(await untilAborted(stub.varve(sent), signal)) as StoreAnswers<K, V>[Q['call']];
  }

  async #one<C extends KeyCall>(call: C, key: K, options?: WaitOptions): Promise<StoreAnswers<K, V>[C][number]> {
    return (await this.#many(call, [key], options))[0];
  }

  /** Asks each shard for its part of the keys; returns the results in the order of the keys. */
  async #many<C extends KeyCall>(call: C, keys: Iterable<K>, options?: WaitOptions): Promise<StoreAnswers<K, V>[C]> {
    checkWait(options);
    const parts = new Map<number, { keys: K[]; places: number[] }>();
    let count = 0;
    for (const key of several(keys)) {
      const shard = this.#shardOf(key);
      const part = parts.get(shard) ?? { keys: [], places: [] };
      parts.set(shard, part);
      part.keys.push(key);
      part.places.push(count++);
    }
    const answers = new Array(count) as StoreAnswers<K, V>[C];
    await Promise.all(
      [...parts].map(async ([shard, part]) => {
        for (let at = 0; at < part.keys.length; ) {
          const request = { call, keys: part.keys.slice(at), part: true };
          const answered = (await this.#call(shard, request, options?.signal)) as StoreAnswers<K, V>[C];
          for (const one of answered) answers[part.places[at++] as number] = one as never;
        }
      }),
    );
    return answers;
  }

  async #writeOne(
    key: K,
    item: BatchItem<K, V>,
    options?: WriteOptions,
    known?: Known<WriteOptions>,
  ): Promise<ShardReceipt> {
    durabilityOf(options, known);
    const shard = this.#shardOf(key);
    return this.#receiptOf(shard, await this.#write(shard, [item], options));
  }

  #write(shard: number, items: BatchItem<K, V>[], options?: WriteOptions): Promise<Receipt> {
    return this.#call(shard, { call: 'batch', items, durability: options?.durability }, options?.signal);
  }

  #commit(parts: ShardParts<K, V>, options: ShardWriteOptions): Promise<R> {
    // One object gives a receipt for an empty batch, too.
    const shards = this.#isOne ? [0] : [...parts.keys()];
    return this.#writeEach(shards, options, (shard) => this.#write(shard, parts.get(shard) ?? [], options));
  }

  /** Makes a write in each of these shards. */
  async #writeEach(
    shards: readonly number[],
    options: ShardWriteOptions,
    write: (shard: number) => Promise<Receipt>,
  ): Promise<R> {
    if (shards.length > 1 && options.atomic !== false) {
      throw invalid(
        `This write goes to ${shards.length} shards, and each applies its part by itself. Pass { atomic: false } if that is fine, or keep keys that are written together in one shard.`,
      );
    }
    const sent = shards.map(async (shard) => this.#receiptOf(shard, await write(shard)));
    const receipts = receiptsOf(await Promise.allSettled(sent));
    return (this.#isOne ? receipts[0] : receipts) as R;
  }

  #receiptOf(shard: number, { sequence }: Receipt): ShardReceipt {
    return { shard: this.names[shard] ?? '', sequence, durability: 'strict' };
  }
}

/** Returns the receipts of all shards, or throws the error of the first shard that failed. */
function receiptsOf(results: PromiseSettledResult<ShardReceipt>[]): ShardReceipt[] {
  const receipts: ShardReceipt[] = [];
  let failure: PromiseRejectedResult | undefined;
  for (const result of results) {
    if (result.status === 'fulfilled') receipts.push(result.value);
    else failure ??= result;
  }
  if (failure === undefined) return receipts;
  const { reason } = failure;
  if (results.length === 1 || !(reason instanceof VarveError)) throw reason;
  const message = `${reason.message} (${receipts.length} of ${results.length} shards have applied their part.)`;
  throw new VarveError(reason.code, message, {
    cause: reason,
    ...(reason.conflict === undefined ? {} : { conflict: reason.conflict }),
  });
}

/**
 * The store of one object, from a Worker or another object, by its stub.
 *
 * @example
 * const db = connect(env.NOTES.get(env.NOTES.idFromName('ada')));
 * await db.set(['note', 42], { title: 'Silt' });
 * for await (const [key, value] of db.entries({ prefix: ['note'] })) console.log(key, value);
 */
export function connect<K = Key, V = unknown>(
  stub: object,
  options: RemoteOptions<K> = {},
): RemoteStore<K, V, ShardReceipt> {
  checkOptions(options, REMOTE);
  return new RemoteStore([''], () => stub, new KeyFormat(options.keys), true);
}

/**
 * A store over several objects of a namespace, for data that outgrows one object: each key is in one of them.
 *
 * The writes of one call to one shard are atomic. Scans return the keys of all shards in order. The set of names is part of the
 * data: with other names, keys are looked for in other shards, so `rebalance` them first.
 *
 * @example
 * const db = shards(env.NOTES, { count: 16 });
 * await db.set(['user', 'ada'], { seen: Date.now() });
 * await db.setMany(entries, { atomic: false });
 *
 * @throws `VARVE_INVALID_ARGUMENT` unless there is either a count from 1 or a list of different names.
 */
export function shards<K = Key, V = unknown>(
  namespace: ObjectNamespace,
  options: ShardOptions<K>,
): RemoteStore<K, V, ShardReceipt[]> {
  checkOptions(options, SHARDS);
  const names = namesOf(options);
  // biome-ignore lint/suspicious/noExplicitAny: the type of an id depends on the namespace.
  const byName = namespace as ObjectNamespace<any>;
  return new RemoteStore(names, (name) => byName.get(byName.idFromName(name)), new KeyFormat(options.keys), false);
}

function namesOf({ count, names }: Pick<ShardOptions, 'count' | 'names'> = {}): string[] {
  const counted = Number.isInteger(count) && (count as number) >= 1;
  if (counted && names === undefined) return Array.from({ length: count as number }, (_, i) => `shard-${i}`);
  const distinct = new Set(names);
  if (count === undefined && names !== undefined && distinct.size === names.length && distinct.size > 0)
    return [...names];
  throw invalid('shards takes a count from 1, or a list of different names.');
}
