/** Options of the synchronous store: types, and their names. */

import { CONDITION, type Known, LIFETIME, RANGE, SET_ITEM } from '../options.ts';
import type { Condition, Durability, ScanOptions, SetItemOptions, UpdateLifetime } from '../types.ts';

/** Options of one synchronous write. */
export interface SyncWriteOptions {
  /**
   * The durability level to reach before the call returns. Default: the store's `durability`; if that is `relaxed`, the write returns as
   * `buffered`.
   */
  durability?: Durability | undefined;
}

/** Options of a synchronous `set`. */
export interface SyncSetOptions extends SyncWriteOptions, SetItemOptions {}

/** Options of a synchronous `update`. */
export interface SyncUpdateOptions extends SyncWriteOptions, UpdateLifetime {}

/** Options of a synchronous `delete`. */
export interface SyncDeleteOptions extends SyncWriteOptions, Condition {}

/** Options of a synchronous scan. */
export type SyncScanOptions<K> = Omit<ScanOptions<K>, 'signal'>;

export const SYNC_WRITE: Known<SyncWriteOptions> = { durability: 1 };
export const SYNC_SET: Known<SyncSetOptions> = { ...SYNC_WRITE, ...SET_ITEM };
export const SYNC_UPDATE: Known<SyncUpdateOptions> = { ...SYNC_WRITE, ...LIFETIME };
export const SYNC_DELETE: Known<SyncDeleteOptions> = { ...SYNC_WRITE, ...CONDITION };
export const SYNC_SCAN: Known<SyncScanOptions<never>> = { ...RANGE, reverse: 1, limit: 1 };
