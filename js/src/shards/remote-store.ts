/**
 * A store in other objects: in one (`connect`), or spread over several by key (`shards`).
 *
 * Invariant: a key is in one shard, which `Rendezvous` chooses by its encoded bytes. One call to one shard is atomic and has one
 * read point. Calls to several shards are not atomic and have no common read point. There is no state here: any number of Workers
 * may use such a store at the same time.
 */

import type { ObjectNamespace } from '../cloudflare/platform.ts';
import {
  type BatchItem,
  type PageOptions,
  type StoreAnswers,
  type StoreReply,
  type StoreRequest,
  unwrap,
} from '../cloudflare/rpc.ts';
import { mappedKey } from '../codec/key-format.ts';
import { encodeKey } from '../codec/keys.ts';
import { VarveError } from '../errors.ts';
import { checkLimit, checkOptions, type Known, pair, several } from '../options.ts';
import { SYNC_SCAN } from '../synchronous/options.ts';
import type { Condition, Entry, Key, KeyCodec, KeyRange, SetItemOptions } from '../types.ts';
import { mergedScan, type ScanSource } from './paged-scan.ts';
import { RemoteBatch, type ShardReceipt, type ShardWriteOptions } from './remote-batch.ts';
import { Rendezvous } from './rendezvous.ts';

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

/** A store in one object or several. Made by `connect` and `shards`. */
export class RemoteStore<K = Key, V = unknown> {
  /** The names of its shards, sorted; one empty name for `connect`. */
  readonly names: readonly string[];
  readonly #places: Rendezvous;
  readonly #stub: (name: string) => object;
  readonly #keys: KeyCodec<K> | undefined;

  /** @internal */
  constructor(names: readonly string[], stub: (name: string) => object, options: RemoteOptions<K>) {
    this.#places = new Rendezvous(names);
    this.names = this.#places.names;
    this.#stub = stub;
    this.#keys = options.keys;
  }

  /** The value of a key, or undefined. */
  async get(key: K): Promise<V | undefined> {
    return (await this.#call(this.#shardOf(key), { call: 'get', keys: [key] }))[0];
  }

  /** The values of several keys, in the order of the keys: one call to each shard that has some of them. */
  getMany(keys: Iterable<K>): Promise<(V | undefined)[]> {
    return this.#many(keys, (shard, part) => this.#call(shard, { call: 'get', keys: part }));
  }

  /** The value of a key with its sequence and expiry, or undefined. Each shard has its own sequences. */
  async getEntry(key: K): Promise<Entry<V> | undefined> {
    return (await this.#call(this.#shardOf(key), { call: 'getEntry', keys: [key] }))[0];
  }

  /** The entries of several keys, in the order of the keys. */
  getEntryMany(keys: Iterable<K>): Promise<(Entry<V> | undefined)[]> {
    return this.#many(keys, (shard, part) => this.#call(shard, { call: 'getEntry', keys: part }));
  }

  /** Whether a key exists. */
  async has(key: K): Promise<boolean> {
    return (await this.#call(this.#shardOf(key), { call: 'has', keys: [key] }))[0] === true;
  }

  /** Whether each of several keys exists, in the order of the keys. */
  hasMany(keys: Iterable<K>): Promise<boolean[]> {
    return this.#many(keys, (shard, part) => this.#call(shard, { call: 'has', keys: part }));
  }

  /**
   * Sets the value of a key, for `expiresIn` milliseconds if given; with `ifSequence` only if its entry is still the one that was
   * read.
   */
  set(key: K, value: V, options?: SetItemOptions): Promise<ShardReceipt> {
    return this.#one(key, ['set', key, value, options]);
  }

  /** Sets the values of several keys. */
  async setMany(entries: Iterable<readonly [K, V]>, options?: ShardWriteOptions): Promise<ShardReceipt[]> {
    const batch = this.batch();
    for (const entry of several(entries)) {
      const [key, value] = pair(entry);
      batch.set(key, value);
    }
    return batch.commit(options);
  }

  /** Deletes a key; with `ifSequence` only if its entry is still the one that was read. */
  delete(key: K, options?: Condition): Promise<ShardReceipt> {
    return this.#one(key, ['delete', key, options]);
  }

  /** Deletes every key of a range, in all shards. A range without bounds is refused. */
  deleteRange(range: KeyRange<K>, options?: ShardWriteOptions): Promise<ShardReceipt[]> {
    return this.batch().deleteRange(range).commit(options);
  }

  /** Collects writes that are sent together. */
  batch(): RemoteBatch<K, V> {
    return new RemoteBatch((items, options) => this.#commit(items, options));
  }

  /** The keys of a range, in order. */
  async *keys(options: PageOptions<K> = {}): AsyncGenerator<K> {
    for await (const { key } of this.#scan(options, false)) yield key;
  }

  /** The values of a range, in the order of their keys. */
  async *values(options: PageOptions<K> = {}): AsyncGenerator<V> {
    for await (const { value } of this.#scan(options, true)) yield value as V;
  }

  /**
   * The entries of a range, in the order of their keys, read in pages. Each page has one read point of its shard; the next page
   * has a later one. With a `limit`, no shard is asked for more entries than that.
   */
  async *entries(options: PageOptions<K> = {}): AsyncGenerator<[K, V]> {
    for await (const { key, value } of this.#scan(options, true)) yield [key, value as V];
  }

  /** The number of keys in a range. */
  async count(range: KeyRange<K> = {}): Promise<number> {
    const counts = await Promise.all(this.names.map((_, shard) => this.#call(shard, { call: 'count', range })));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** The name of the shard of a key. */
  shardOf(key: K): string {
    return this.names[this.#shardOf(key)] ?? '';
  }

  /** One of its shards as a store. */
  shard(name: string): RemoteStore<K, V> {
    if (!this.names.includes(name)) throw new VarveError('VARVE_INVALID_ARGUMENT', `There is no shard ${name}.`);
    return new RemoteStore([name], this.#stub, { keys: this.#keys });
  }

  #shardOf(key: K): number {
    return this.names.length === 1 ? 0 : this.#places.shardOf(this.#encode(key));
  }

  #encode(key: K): Uint8Array {
    // Without a codec keys are Varve keys.
    return encodeKey(this.#keys === undefined ? (key as Key) : mappedKey(this.#keys, key));
  }

  #scan(options: PageOptions<K>, values: boolean) {
    checkOptions(options, SYNC_SCAN);
    if (options.limit !== undefined) checkLimit(options.limit);
    const source: ScanSource<K, V> = {
      shards: this.names.map((_, shard) => shard),
      page: (shard, range) => this.#call(shard, { call: 'page', range, values }),
      encode: (key) => this.#encode(key),
      owner: (bytes) => this.#places.shardOf(bytes),
    };
    return mergedScan(source, options);
  }

  async #call<R extends StoreRequest<K, V>>(shard: number, request: R): Promise<StoreAnswers<K, V>[R['call']]> {
    const stub = this.#stub(this.names[shard] ?? '') as StoreStub<K, V>;
    return unwrap(await stub.varve(request)) as StoreAnswers<K, V>[R['call']];
  }

  /** Asks each shard for its part of the keys; returns the results in the order of the keys. */
  async #many<R>(keys: Iterable<K>, ask: (shard: number, keys: K[]) => Promise<R[]>): Promise<R[]> {
    const parts = new Map<number, { keys: K[]; places: number[] }>();
    let count = 0;
    for (const key of several(keys)) {
      const shard = this.#shardOf(key);
      const part = parts.get(shard) ?? { keys: [], places: [] };
      parts.set(shard, part);
      part.keys.push(key);
      part.places.push(count++);
    }
    const answers = new Array<R>(count);
    await Promise.all(
      [...parts].map(async ([shard, part]) => {
        const answered = await ask(shard, part.keys);
        for (const [i, place] of part.places.entries()) answers[place] = answered[i] as R;
      }),
    );
    return answers;
  }

  async #one(key: K, item: BatchItem<K, V>): Promise<ShardReceipt> {
    const shard = this.#shardOf(key);
    return this.#receipt(shard, await this.#call(shard, { call: 'batch', items: [item] }));
  }

  async #commit(items: readonly BatchItem<K, V>[], { atomic = true }: ShardWriteOptions): Promise<ShardReceipt[]> {
    const parts = new Map<number, BatchItem<K, V>[]>();
    for (const item of items) {
      for (const shard of item[0] === 'deleteRange' ? this.names.keys() : [this.#shardOf(item[1])]) {
        const part = parts.get(shard);
        if (part === undefined) parts.set(shard, [item]);
        else part.push(item);
      }
    }
    if (atomic && parts.size > 1) {
      throw new VarveError(
        'VARVE_INVALID_ARGUMENT',
        `This write goes to ${parts.size} shards, which apply it each for itself. Pass { atomic: false } if that is fine, or keep together what is written together.`,
      );
    }
    const sent = [...parts].map(async ([shard, part]) =>
      this.#receipt(shard, await this.#call(shard, { call: 'batch', items: part })),
    );
    return settled(await Promise.allSettled(sent));
  }

  #receipt(shard: number, { sequence }: { readonly sequence: number }): ShardReceipt {
    return { shard: this.names[shard] ?? '', sequence, durability: 'strict' };
  }
}

/** Returns the receipts of all shards, or throws the error of the first shard that failed. */
function settled(results: PromiseSettledResult<ShardReceipt>[]): ShardReceipt[] {
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
export function connect<K = Key, V = unknown>(stub: object, options: RemoteOptions<K> = {}): RemoteStore<K, V> {
  checkOptions(options, REMOTE);
  return new RemoteStore([''], () => stub, options);
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
export function shards<K = Key, V = unknown>(namespace: ObjectNamespace, options: ShardOptions<K>): RemoteStore<K, V> {
  checkOptions(options, SHARDS);
  const names = namesOf(options);
  // biome-ignore lint/suspicious/noExplicitAny: what an id is, is the namespace's affair.
  const byName = namespace as ObjectNamespace<any>;
  return new RemoteStore(names, (name) => byName.get(byName.idFromName(name)), options);
}

function namesOf({ count, names }: Pick<ShardOptions, 'count' | 'names'>): string[] {
  const counted = Number.isInteger(count) && (count as number) >= 1;
  if (counted && names === undefined) return Array.from({ length: count as number }, (_, i) => `shard-${i}`);
  const distinct = new Set(names);
  if (count === undefined && names !== undefined && distinct.size === names.length && distinct.size > 0)
    return [...names];
  throw new VarveError('VARVE_INVALID_ARGUMENT', 'shards takes a count from 1, or a list of different names.');
}
