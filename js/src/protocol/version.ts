/**
 * The version that users give a store, and where it is kept.
 *
 *   key      ff "version"                 reserved: no key of a user begins with ff
 *   value    u64 little-endian            from 1 up
 *
 * Invariant: it is written by the transaction that upgrades, and by nothing else.
 */

import { VarveError } from '../errors.ts';
import type { UpgradeVersions } from '../types.ts';

/** The reserved key. */
export const VERSION_KEY: Uint8Array = Uint8Array.of(0xff, ...new TextEncoder().encode('version'));

/** The version in a value; 0 if there is no value. */
export function readVersion(value: Uint8Array | undefined): number {
  if (value === undefined) return 0;
  const words = new DataView(value.buffer, value.byteOffset, value.length);
  return words.getUint32(0, true) + words.getUint32(4, true) * 0x1_0000_0000;
}

/** The value of a version. */
export function versionBytes(version: number): Uint8Array {
  const words = new DataView(new ArrayBuffer(8));
  words.setUint32(0, version >>> 0, true);
  words.setUint32(4, Math.floor(version / 0x1_0000_0000), true);
  return new Uint8Array(words.buffer);
}

/** The versions of an upgrade; undefined if none is due. Throws `VARVE_VERSION` for a store with a higher version. */
export function upgradeOf(
  name: string,
  stored: Uint8Array | undefined,
  newVersion: number,
): UpgradeVersions | undefined {
  const oldVersion = readVersion(stored);
  if (oldVersion <= newVersion) return oldVersion < newVersion ? { oldVersion, newVersion } : undefined;
  throw new VarveError(
    'VARVE_VERSION',
    `The store '${name}' has version ${oldVersion}, this code is of version ${newVersion}. Reload to get the newer code.`,
  );
}
