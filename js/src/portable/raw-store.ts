/** A store below its codecs, as exports and imports use it. Types only. */

import type { Bound } from '../codec/range.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import type { Durability } from '../types.ts';

/** What one kind of store gives later and the other at once. */
export type Eventual<T> = T | PromiseLike<T>;

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

/** A value as it is stored, and the sequence of the write that made it. */
export interface RawEntry {
  readonly value: Uint8Array;
  readonly sequence: number;
}

/** Keys and values as they are stored. */
export interface RawStore {
  /** What a key has, in a snapshot (0: now). */
  get(key: Uint8Array, snapshot: number): Eventual<RawEntry | undefined>;
  /** Scans a range of users' keys. */
  scan(range: RawRange, snapshot: number): RawScan;
  /** Applies the items of a batch (protocol/batch-writer.ts). `VARVE_CONFLICT` when a condition of one does not hold. */
  commit(items: Uint8Array, durability: Durability | undefined): Eventual<unknown>;
}
