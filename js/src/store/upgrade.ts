/** Options of `open` that bring a store to a version. Types only. */

import type { OpenOptions, UpgradeVersions } from '../types.ts';
import type { Transaction } from './transaction.ts';

/** Brings a store from one version to the next, inside a transaction. */
export type Upgrade<K, V> = (tx: Transaction<K, V>, versions: UpgradeVersions) => void | PromiseLike<void>;

/** Options of `open`. `K` and `V` follow the codecs. */
export interface StoreOptions<K, V> extends OpenOptions<K, V> {
  /**
   * Brings the store from the version that it has to the `version` asked for. Its writes and the new version are one strict
   * transaction: if it throws, `open` rejects with that, the store stays as it was, and is closed.
   */
  upgrade?: Upgrade<K, V> | undefined;
}
