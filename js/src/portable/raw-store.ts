/** A store below its codecs, as exports and imports use it. Types only. */

import type { Bound } from '../codec/range.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import type { Durability } from '../types.ts';

/** What one kind of store gives later and the other at once. */
export type Eventual<T> = T | PromiseLike<T>;

/** Batches of a scan; each value begins with its entry's expiry, a u64 that is 0 for none. */
export interface RawScan {
  /** The next batch, or undefined after the last one. */
  take(): Eventual<ScanBatch | undefined>;
  close(): void;
}

/** Keys and values as they are stored. */
export interface RawStore {
  /** The value of a key, in a snapshot (0: now). */
  get(key: Uint8Array, snapshot: number): Eventual<Uint8Array | undefined>;
  /** Scans a range of users' keys. */
  scan(range: { readonly lower: Bound | undefined; readonly upper: Bound | undefined }, snapshot: number): RawScan;
  /** Applies the items of a batch (protocol/batch-writer.ts). */
  commit(items: Uint8Array, durability: Durability | undefined): Eventual<unknown>;
}
