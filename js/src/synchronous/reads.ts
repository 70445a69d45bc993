/** The reads that a synchronous store, its snapshots and its transactions share. */

import type { Reads } from '../api.ts';
import { checkWait, several } from '../options.ts';
import type { CountOptions, ScanOptions, WaitOptions } from '../types.ts';
import { Want } from './scan.ts';

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
