/** The reads that a synchronous store, its snapshots and its transactions share. */

import type { Reads } from '../api.ts';
import type { Formats } from '../codec/formats.ts';
import type { ByteRange } from '../codec/range.ts';
import { checkWait, several } from '../options.ts';
import type { Course } from '../store/scan-iterator.ts';
import type { OverlayScan } from '../transaction/overlay-scan.ts';
import type { CountOptions, Entry, ScanOptions, SyncRangeIterator, WaitOptions } from '../types.ts';
import { Want } from './scan.ts';

/** Lays the writes of a transaction over a part of a range; undefined if nothing is in it. */
export type Lay = (part: ByteRange, course: Course) => OverlayScan | undefined;

/** The reads of a store in a snapshot with this number; 0 is the store as it is. They throw once the store is closed. */
export interface SnapshotReads<K, V> {
  /** The part of `SyncScans` that is used: the public types may not name the engine's. */
  readonly scans: {
    scan<T>(options: ScanOptions<K>, want: number, snapshot: number): SyncRangeIterator<K, T>;
    overlaid<T>(range: ByteRange, course: Course, want: number, snapshot: number, lay: Lay): SyncRangeIterator<K, T>;
    count(range: CountOptions<K>, snapshot: number): number;
    countBytes(range: ByteRange, snapshot: number, signal?: AbortSignal): number;
  };
  entry(key: K, snapshot: number): Entry<V> | undefined;
  has(key: K, snapshot: number): boolean;
  readonly formats: Formats<K, V>;
  /** The same reads in other formats. */
  at<K2, V2>(formats: Formats<K2, V2>): SnapshotReads<K2, V2>;
}

/** Reads of a store, of a snapshot or in a transaction. */
export abstract class SyncReader<K, V> implements Omit<Reads<K, V>, 'getEntry'>, Iterable<[K, V]> {
  abstract get(key: K, options?: WaitOptions): V | undefined;

  abstract has(key: K, options?: WaitOptions): boolean;

  abstract count(range?: CountOptions<K>): number;

  /** @internal An iterator over what `want` names. */
  abstract scan<T>(options: ScanOptions<K>, want: number): SyncRangeIterator<K, T>;

  getMany(keys: Iterable<K>, options?: WaitOptions): (V | undefined)[] {
    checkWait(options);
    return Array.from(several(keys), (key) => this.get(key));
  }

  hasMany(keys: Iterable<K>, options?: WaitOptions): boolean[] {
    checkWait(options);
    return Array.from(several(keys), (key) => this.has(key));
  }

  keys(options: ScanOptions<K> = {}): SyncRangeIterator<K, K> {
    return this.scan(options, Want.keys);
  }

  values(options: ScanOptions<K> = {}): SyncRangeIterator<K, V> {
    return this.scan(options, Want.values);
  }

  entries(options: ScanOptions<K> = {}): SyncRangeIterator<K, [K, V]> {
    return this.scan(options, Want.entries);
  }

  /** All entries, in the order of their keys. */
  [Symbol.iterator](): SyncRangeIterator<K, [K, V]> {
    return this.entries();
  }
}
