/** A store below its codecs, for exports and imports. Types only. */

import type { Bound } from '../codec/range.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import type { Durability, Eventual } from '../types.ts';

/** A range of keys; an absent bound is open. */
export interface RawRange {
  readonly lower: Bound | undefined;
  readonly upper: Bound | undefined;
}

/** Batches of a scan; each value begins with its entry's expiry, a u64 that is 0 for none. */
export interface RawScan {
  /** The next batch, or undefined after the last one. */
  take(): Eventual<ScanBatch | undefined>;
  close(): void;
}

/** A value in its stored form, and the sequence of the write that made it. */
export interface RawEntry {
  readonly value: Uint8Array;
  readonly sequence: number;
}

/** Access to keys and values in their stored form. */
export interface RawStore {
  /** The entry of a key, in a snapshot (0: now). */
  get(key: Uint8Array, snapshot: number): Eventual<RawEntry | undefined>;
  /** Scans a range of users' keys. */
  scan(range: RawRange, snapshot: number): RawScan;
  /**
   * Applies the items of a batch (protocol/batch-writer.ts); returns the sequence of the last one. Fails with `VARVE_CONFLICT` if a
   * condition of an item is not true.
   */
  commit(items: Uint8Array, durability: Durability | undefined): Eventual<{ readonly sequence: number }>;
}
