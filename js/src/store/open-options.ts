/** The options of `open`. Types only. */

import type { CacheOptions, CommonOpenOptions, Key } from '../types.ts';
import type { Upgrade } from './transaction.ts';

/** Options of `open`. `K` and `V` follow the codecs. */
export interface OpenOptions<K = Key, V = unknown> extends CommonOpenOptions<K, V, Upgrade<K, V>> {
  /**
   * Answers `get`, `getMany` and `has` from values kept in this tab. Off by default. Reads see the writes of this tab at once, as
   * always. They may miss a commit of another tab until its change arrives here: this takes milliseconds, and `ttl` at most. With
   * the cache, the values of one `getMany` may come from different read points. Snapshots, transactions, scans, `getEntry` and
   * `update` always ask the store.
   */
  cache?: CacheOptions | undefined;
  /** The engine worker: the URL of its script, or a function that creates the worker. Default: the script beside this module. */
  worker?: string | URL | ((name: string) => Worker) | undefined;
}
