/** Options of `open` that upgrade a store to a version. Types only. */

import type { OpenOptions, UpgradeVersions } from '../types.ts';
import type { Transaction } from './transaction.ts';

/** Upgrades a store from one version to another, inside a transaction. */
export type Upgrade<K, V> = (tx: Transaction<K, V>, versions: UpgradeVersions) => void | PromiseLike<void>;

/** Options of `open`. `K` and `V` follow the codecs. */
export interface StoreOptions<K, V> extends OpenOptions<K, V> {
  /**
   * Upgrades the store from its present version to the given `version`. The writes of this function and the new version are one
   * transaction with `strict` durability. If the function throws, `open` rejects with that error, and the store is closed unchanged.
   */
  upgrade?: Upgrade<K, V> | undefined;
}
