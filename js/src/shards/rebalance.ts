/**
 * Moves keys to the shards where another set of shards looks for them.
 *
 *     1. every key that belongs elsewhere is copied there, with its expiry     readers may use the old set
 *     2. it is deleted where it was                                           readers use the new set, scans of the old set have ended
 *
 * Meanwhile a key may be in two shards of a set: scans skip the second, and counts may be too high.
 *
 * Invariant: a key is deleted only if the new set has it. A step changes nothing when it is done again, so an interrupted run is
 * simply repeated.
 */

import { hasCode, VarveError } from '../errors.ts';
import { checkOptions, type Known } from '../options.ts';
import type { RemoteStore } from './remote-store.ts';

/** Keys that one call to each shard moves. */
const KEYS_AT_ONCE = 100;

/** The progress of a `rebalance`. */
export interface RebalanceProgress {
  readonly step: 'copy' | 'delete';
  /** The shard whose keys are being read. */
  readonly shard: string;
  /** Keys copied so far, in all shards. */
  readonly copied: number;
  /** Keys deleted so far, in all shards. */
  readonly deleted: number;
}

/** Options of `rebalance`. */
export interface RebalanceOptions {
  /** Called about once for every hundred keys. */
  onProgress?: ((progress: RebalanceProgress) => void) | undefined;
  /**
   * Called between the two steps, when both sets have all keys. When this resolves, the keys that moved are deleted from the old set.
   * Readers that still use it miss them, without an error: so resolve only when all of them use the new set, and when all calls and scans
   * of the old set have ended. If this rejects, nothing is deleted, and a later run goes on from here. A value in Workers KV is no switch:
   * other places read the old one for a minute or more.
   */
  onCopied?: (() => void | Promise<void>) | undefined;
}

const REBALANCE: Known<RebalanceOptions> = { onProgress: 1, onCopied: 1 };

/** The result of a `rebalance`. */
export interface RebalanceReport {
  readonly copied: number;
  readonly deleted: number;
}

/**
 * Moves the keys of a store from one set of shards to the shards in which another set looks for them. Nobody may write meanwhile,
 * nor between an interrupted run and its repetition: keys that were already copied are not copied again, so the older copies
 * would win. If two sets differ by one shard, one in n keys moves, where n is the number of shards. Until a run is complete, `count` of
 * either set may be too high: it counts a key twice that is in two shards.
 *
 * @example
 * // Readers use shards(env.NOTES, { count: Number(env.SHARDS) }), where SHARDS is a variable of the deployment. The first run copies, and
 * // stops. Deploy SHARDS = 20, wait until no call of the old version runs any more, and run it again: now it deletes.
 * const old = shards(env.NOTES, { count: 16 });
 * const next = shards(env.NOTES, { count: 20 });
 * await rebalance(old, next, {
 *   onCopied: () => {
 *     if (env.SHARDS !== '20') throw new Error('All is copied. Deploy SHARDS = 20, then run this again.');
 *   },
 * });
 */
export async function rebalance<K, V>(
  from: RemoteStore<K, V>,
  to: RemoteStore<K, V>,
  options: RebalanceOptions = {},
): Promise<RebalanceReport> {
  checkOptions(options, REBALANCE);
  const { onProgress, onCopied } = options;
  let copied = 0;
  let deleted = 0;
  for (const [shard, keys] of batchesOf(from, to)) {
    for await (const batch of keys) {
      copied += await copy(from.shard(shard), to, batch);
      onProgress?.({ step: 'copy', shard, copied, deleted });
    }
  }
  await onCopied?.();
  for (const [shard, keys] of batchesOf(from, to)) {
    for await (const batch of keys) {
      deleted += await remove(from.shard(shard), to, batch);
      onProgress?.({ step: 'delete', shard, copied, deleted });
    }
  }
  return { copied, deleted };
}

/** For each shard, its keys that belong in another shard. */
function batchesOf<K, V>(from: RemoteStore<K, V>, to: RemoteStore<K, V>): [string, AsyncGenerator<K[]>][] {
  return from.names.map((name) => [name, misplaced(from.shard(name), name, to)]);
}

async function* misplaced<K, V>(source: RemoteStore<K, V>, name: string, to: RemoteStore<K, V>): AsyncGenerator<K[]> {
  let batch: K[] = [];
  for await (const key of source.keys()) {
    if (to.shardOf(key) === name) continue;
    batch.push(key);
    if (batch.length < KEYS_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Copies keys that the new set does not have yet; returns how many. */
async function copy<K, V>(source: RemoteStore<K, V>, to: RemoteStore<K, V>, keys: K[]): Promise<number> {
  const there = await to.hasMany(keys);
  const missing = keys.filter((_, i) => !there[i]);
  let copied = 0;
  for (let at = 0; at < missing.length; ) {
    const batch = to.batch();
    // A part that one response could hold fits into one request.
    for (const entry of await source.getFirstEntries(missing.slice(at))) {
      const key = missing[at++] as K;
      if (entry !== undefined) batch.set(key, entry.value, { expiresAt: entry.expiresAt, ifSequence: null });
    }
    try {
      await batch.commit({ atomic: false });
    } catch (error) {
      if (!hasCode(error, 'VARVE_CONFLICT')) throw error;
      const message = `Another client wrote while keys were moved: stop the writes, and run it again. ${error.message}`;
      throw new VarveError('VARVE_CONFLICT', message, { cause: error });
    }
    copied += batch.size;
  }
  return copied;
}

/** Deletes keys that the new set has; returns how many. */
async function remove<K, V>(source: RemoteStore<K, V>, to: RemoteStore<K, V>, keys: K[]): Promise<number> {
  const there = await to.hasMany(keys);
  const batch = source.batch();
  for (const [i, key] of keys.entries()) if (there[i]) batch.delete(key);
  await batch.commit();
  return batch.size;
}
