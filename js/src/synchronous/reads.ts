/** The reads that a synchronous store, its snapshots and its transactions share. */

import type { Reads } from '../api.ts';
import type { Formats } from '../codec/formats.ts';
import type { ByteRange } from '../codec/range.ts';
import { checkWait, several } from '../options.ts';
import type { OverlayScan } from '../transaction/overlay-scan.ts';
import type { CountOptions, Entry, ScanOptions, WaitOptions } from '../types.ts';
import { Want } from './scan.ts';

/** The reads of a store in a snapshot with this number; 0 is the store as it is. They throw once the store is closed. */
export interface SnapshotReads<K, V> {
  /** The part of `SyncScans` that is used: the public types may not name the engine's. */
  readonly scans: {
    scan<T>(options: ScanOptions<K>, want: number, snapshot: number): IterableIterator<T>;
    overlaid<T>(want: number, snapshot: number, over?: OverlayScan, signal?: AbortSignal): IterableIterator<T>;
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
export abstract class SyncReadView<K, V> implements Omit<Reads<K, V>, 'getEntry'>, Iterable<[K, V]> {
  abstract get(key: K, options?: WaitOptions): V | undefined;

  abstract has(key: K, options?: WaitOptions): boolean;

  abstract count(range?: CountOptions<K>): number;

  /** @internal An iterator over what `want` names. */
  abstract scan<T>(options: ScanOptions<K>, want: number): IterableIterator<T>;

  getMany(keys: Iterable<K>, options?: WaitOptions): (V | undefined)[] {
    checkWait(options);
    return Array.from(several(keys), (key) => this.get(key));
  }

  hasMany(keys: Iterable<K>, options?: WaitOptions): boolean[] {
    checkWait(options);
    return Array.from(several(keys), (key) => this.has(key));
  }

  keys(options: ScanOptions<K> = {}): IterableIterator<K> {
    return this.scan(options, Want.keys);
  }

  values(options: ScanOptions<K> = {}): IterableIterator<V> {
    return this.scan(options, Want.values);
  }

  entries(options: ScanOptions<K> = {}): IterableIterator<[K, V]> {
    return this.scan(options, Want.entries);
  }

  /** All entries, in the order of their keys. */
  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.entries();
  }
}
