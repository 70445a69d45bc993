/** The report of a store at the end of a suite: the numbers that it gives about itself, and the size of its files. */

import type { StoreNumbers } from './engine.ts';

export interface StorageReport {
  readonly suite: string;
  readonly engine: string;
  /** The store was flushed and compacted before the suite, which only read. */
  readonly compacted: boolean;
  readonly entries: number;
  readonly logicalBytes: number;
  /** Bytes of the store's files, as the file system counts them, after closing. */
  readonly diskBytes: number;
  /** Space amplification: those bytes for each byte of keys and values that is there. */
  readonly diskBytesPerLogicalByte: number;
  /** Bytes logged, flushed and compacted for each byte of keys and values that was written; null where none was. */
  readonly writeAmplification: number | null;
  /** Sorted runs that a read may have to visit: memtables, tables of level 0, levels below. */
  readonly readAmplification: number;
  readonly walSegments: number;
  readonly tablesPerLevel: readonly number[];
  readonly memoryBytes: number;
  readonly stats?: Readonly<Record<string, unknown>>;
}

/** Bytes that a store has written since it was opened: logged, flushed and merged. */
export function writtenBytes({ log, flush, compaction }: StoreNumbers): number {
  return log.writtenBytes + flush.writtenBytes + compaction.writtenBytes;
}

/** Bytes that a store holds in memory: memtables, cache, and the indexes and filters of open tables. */
export function heldBytes({ memtable, cache }: Pick<StoreNumbers, 'memtable' | 'cache'>): number {
  return memtable.bytes + memtable.frozenBytes + cache.bytes + cache.indexBytes;
}
