/** Options of the synchronous store. Types only. */

import type { Condition, Durability, ScanOptions, SetItemOptions } from '../types.ts';

/** Options of one synchronous write. */
export interface SyncWriteOptions {
  /** The level to reach before the call returns. Default: `buffered`, or the store's `durability` unless that is `relaxed`. */
  durability?: Durability | undefined;
}

/** Options of a synchronous `set`. */
export interface SyncSetOptions extends SyncWriteOptions, SetItemOptions {}

/** Options of a synchronous `delete`. */
export interface SyncDeleteOptions extends SyncWriteOptions, Condition {}

/** Options of a synchronous scan. */
export type SyncScanOptions<K> = Omit<ScanOptions<K>, 'signal'>;
