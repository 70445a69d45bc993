/**
 * Bringing a store of `varve/sync` to a version.
 *
 * Invariant: the writes of an upgrade and the new version are one transaction.
 */

import { isUpgrade, readVersion, VERSION_KEY, versionBytes } from '../transaction/version.ts';
import type { UpgradeVersions } from '../types.ts';
import { runSyncTransaction, type SyncTransaction, type SyncTransactionParts } from './sync-transaction.ts';

/** Brings a store from one version to the next, inside a transaction; it must not return a promise. */
export type SyncUpgrade<K, V> = (tx: SyncTransaction<K, V>, versions: UpgradeVersions) => void;

/** What an upgrade is asked for. */
export interface SyncUpgradeWish<K, V> {
  readonly name: string;
  readonly version: number;
  readonly upgrade: SyncUpgrade<K, V> | undefined;
}

/** Runs an upgrade, if one is due. Throws `VARVE_VERSION` for a store that is newer. */
export function upgradeSync<K, V>(
  parts: SyncTransactionParts<K, V>,
  { name, version, upgrade }: SyncUpgradeWish<K, V>,
): void {
  runSyncTransaction(
    parts,
    (tx, reserved) => {
      const oldVersion = readVersion(reserved.get(VERSION_KEY));
      if (!isUpgrade(name, oldVersion, version)) return undefined;
      reserved.set(VERSION_KEY, versionBytes(version));
      // A promise is refused by whoever gets it.
      return upgrade?.(tx, { oldVersion, newVersion: version });
    },
    { durability: 'strict' },
  );
}
