/**
 * A scan over one shard, page by page, and the merge of several into one order.
 *
 * Invariant: entries come in the order of their keys' bytes, no key twice. A page has one read point. The next page of that
 * shard has a later one, and pages of other shards have their own.
 */

import type { Page } from '../cloudflare/rpc.ts';
import { compareBytes } from '../codec/range.ts';
import type { ScanOptions } from '../types.ts';

/** Entries of the first page of each shard, if there are several shards. Each next page is four times as long. */
const FIRST_PAGE = 64;
const PAGE_GROWTH = 4;
const PAGE_MAX = 1000;

/** An entry on its way through a merge. */
export interface ShardEntry<K, V> {
  readonly shard: number;
  readonly key: K;
  /** Undefined in scans of keys. */
  readonly value: V | undefined;
  readonly bytes: Uint8Array;
}

/** How a scan reaches its shards. */
export interface ScanSource<K, V> {
  readonly shards: readonly number[];
  readonly signal: AbortSignal | undefined;
  page(shard: number, range: ScanOptions<K>): Promise<Page<K, V>>;
  encode(key: K): Uint8Array;
  /** The shard that a key belongs to. */
  owner(bytes: Uint8Array): number;
}

/** The results of `item` for the entries of a range, in order, over all shards. */
export async function* mergedScan<K, V, T>(
  source: ScanSource<K, V>,
  range: ScanOptions<K>,
  item: (entry: ShardEntry<K, V>) => T,
): AsyncGenerator<T, undefined, undefined> {
  const { limit = Number.POSITIVE_INFINITY, reverse = false } = range;
  if (limit === 0) return;
  const sign = reverse ? -1 : 1;
  const order = (a: ShardEntry<K, V>, b: ShardEntry<K, V>): number =>
    sign * compareBytes(a.bytes, b.bytes) || ownedFirst(source, a, b);
  const scans = new Map(source.shards.map((shard) => [shard, shardEntries(source, shard, range)]));
  const heads: ShardEntry<K, V>[] = [];
  const first = await Promise.all([...scans.values()].map((scan) => scan.next()));
  for (const head of first) if (!head.done) insert(heads, head.value, order);
  let given = 0;
  let last: Uint8Array | undefined;
  for (let entry = heads.shift(); entry !== undefined; entry = heads.shift()) {
    source.signal?.throwIfAborted();
    // While keys are being moved, a key may be in two shards.
    if (last === undefined || compareBytes(last, entry.bytes) !== 0) {
      yield item(entry);
      if (++given >= limit) return;
    }
    last = entry.bytes;
    const next = await scans.get(entry.shard)?.next();
    if (next !== undefined && !next.done) insert(heads, next.value, order);
  }
}

/** The entries of one shard. */
async function* shardEntries<K, V>(
  source: ScanSource<K, V>,
  shard: number,
  range: ScanOptions<K>,
): AsyncGenerator<ShardEntry<K, V>> {
  const { limit = Number.POSITIVE_INFINITY, ...keys } = range;
  let left = limit;
  let length = source.shards.length > 1 ? FIRST_PAGE : PAGE_MAX;
  let behind: ScanOptions<K> = keys;
  for (;;) {
    const page = await source.page(shard, { ...behind, limit: Math.min(left, length) });
    for (const [i, key] of page.keys.entries()) {
      yield { shard, key, value: page.values[i], bytes: source.encode(key) };
    }
    left -= page.keys.length;
    const last = page.keys.at(-1);
    if (page.isLast || last === undefined || left <= 0) return;
    behind = range.reverse ? { ...keys, lt: last, lte: undefined } : { ...keys, gt: last, gte: undefined };
    length = Math.min(PAGE_MAX, length * PAGE_GROWTH);
  }
}

/** Inserts an entry into an ordered list. */
function insert<T>(list: T[], item: T, order: (a: T, b: T) => number): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(list[middle] as T, item) < 0) low = middle + 1;
    else high = middle;
  }
  list.splice(low, 0, item);
}

/** If a key is in two shards, orders the shard first in which reads look for it. */
function ownedFirst<K, V>(source: ScanSource<K, V>, a: ShardEntry<K, V>, b: ShardEntry<K, V>): number {
  const owner = source.owner(a.bytes);
  return Number(b.shard === owner) - Number(a.shard === owner);
}
