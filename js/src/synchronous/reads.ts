/** The reads that a synchronous store, its snapshots and its transactions share. */

import { checkWait, several } from '../options.ts';
import type { CountOptions, ScanOptions, WaitOptions } from '../types.ts';
import { Want } from './scan.ts';

/** Reads of a store, of a snapshot or in a transaction. */
export abstract class SyncReadView<K, V> implements Iterable<[K, V]> {
  /** The value of a key, or undefined. A Uint8Array may be a view of a larger buffer: `slice()` it before you transfer it. */
  abstract get(key: K, options?: WaitOptions): V | undefined;

  /** Whether a key is there. */
  abstract has(key: K, options?: WaitOptions): boolean;

  /** How many keys a range has; no key is copied out of the engine if all of them are there. */
  abstract count(range?: CountOptions<K>): number;

  /** @internal An iterator over what `want` names. */
  abstract scan<T>(options: ScanOptions<K>, want: number): IterableIterator<T>;

  /** The values of several keys, in their order. */
  getMany(keys: Iterable<K>, options?: WaitOptions): (V | undefined)[] {
    checkWait(options);
    return Array.from(several(keys), (key) => this.get(key));
  }

  /** Whether each of several keys is there, in their order. */
  hasMany(keys: Iterable<K>, options?: WaitOptions): boolean[] {
    checkWait(options);
    return Array.from(several(keys), (key) => this.has(key));
  }

  /** The keys of a range, in order, as they are at this call. */
  keys(options: ScanOptions<K> = {}): IterableIterator<K> {
    return this.scan(options, Want.keys);
  }

  /** The values of a range, in the order of their keys. */
  values(options: ScanOptions<K> = {}): IterableIterator<V> {
    return this.scan(options, Want.values);
  }

  /** The entries of a range, in the order of their keys. */
  entries(options: ScanOptions<K> = {}): IterableIterator<[K, V]> {
    return this.scan(options, Want.entries);
  }

  /** All entries, in the order of their keys. */
  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.entries();
  }
}
