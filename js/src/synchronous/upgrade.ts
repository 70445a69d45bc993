/**
 * Upgrading a store of `varve/synchronous` to a version.
 *
 * Invariant: the writes of an upgrade and the new version are one transaction.
 */

import { isUpgrade, readVersion, VERSION_KEY, versionBytes } from '../transaction/version.ts';
import type { UpgradeVersions } from '../types.ts';
import { runSyncTransaction, type SyncTransaction, type SyncTransactionParts } from './transaction.ts';

/** Upgrades a store from one version to another, inside a transaction; it must not return a promise. */
export type SyncUpgrade<K, V> = (tx: SyncTransaction<K, V>, versions: UpgradeVersions) => void;

/** The request of an upgrade. */
export interface SyncUpgradeRequest<K, V> {
  readonly name: string;
  readonly version: number;
  readonly upgrade: SyncUpgrade<K, V> | undefined;
}

/** Runs an upgrade, if one is due. Throws `VARVE_VERSION` for a store with a higher version. */
export function upgradeSync<K, V>(
  parts: SyncTransactionParts<K, V>,
  { name, version, upgrade }: SyncUpgradeRequest<K, V>,
): void {
  runSyncTransaction(
    parts,
    (tx, reserved) => {
      const oldVersion = readVersion(reserved.get(VERSION_KEY));
      if (!isUpgrade(name, oldVersion, version)) return undefined;
      reserved.set(VERSION_KEY, versionBytes(version));
      // The caller that gets the result refuses a promise.
      return upgrade?.(tx, { oldVersion, newVersion: version });
    },
    { durability: 'strict' },
  );
}
