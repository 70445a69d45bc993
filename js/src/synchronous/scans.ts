/**
 * Opens the scans of a synchronous store, of its snapshots and of its transactions, and counts.
 *
 * Invariant: the range is encoded and checked before the engine is called; a scan without results is never opened in the
 * engine.
 */

import { type ByteRange, encodeRange } from '../codec/range.ts';
import { ByteSink } from '../codec/sink.ts';
import { COUNT, checkLimit, SCAN } from '../options.ts';
import { COUNT_BATCH, readScanBatch, writeScanOpen } from '../protocol/scan.ts';
import type { Course } from '../store/scan-iterator.ts';
import type { CountOptions, ScanOptions } from '../types.ts';
import type { Lay } from './reads.ts';
import { BATCH_BYTES_FIRST, type Opened, type ScanSource, SyncScan, Want } from './scan.ts';

/** The scans of one store. A `snapshot` is the number of a snapshot in the engine; 0 is the store as it is. */
export class SyncScans<K, V> {
  readonly #source: ScanSource<K, V>;
  /** A sink over the engine's scratch. */
  readonly #sink = new ByteSink(0);

  constructor(source: ScanSource<K, V>) {
    this.#source = source;
  }

  /** An iterator over the contents of a range. */
  scan<T>(options: ScanOptions<K>, want: number, snapshot = 0): SyncScan<K, V, T> {
    const range = encodeRange(options, this.#source.keys, SCAN);
    const open = (part: ByteRange, course: Course): Opened => ({ cursor: this.#open(part, course, want, snapshot) });
    return new SyncScan(this.#source, want, { range, course: options, open });
  }

  /** A scan of a transaction. */
  overlaid<T>(range: ByteRange, course: Course, want: number, snapshot: number, lay: Lay): SyncScan<K, V, T> {
    const open = (part: ByteRange, on: Course): Opened => {
      const overlay = lay(part, on);
      const cursor = overlay?.asksStore === true ? this.#open(overlay.bounds, overlay, want | Want.keys, snapshot) : 0;
      return { cursor, overlay };
    };
    return new SyncScan(this.#source, want, { range, course, open });
  }

  /** How many keys a range has. */
  count(range: CountOptions<K>, snapshot = 0): number {
    return this.countBytes(encodeRange(range, this.#source.keys, COUNT), snapshot, range.signal);
  }

  /** How many keys a range of bytes has. */
  countBytes(range: ByteRange, snapshot: number, signal?: AbortSignal): number {
    const { store } = this.#source;
    const cursor = this.#open(range, { signal }, 0, snapshot);
    let count = 0;
    try {
      for (let more = cursor > 0; more; ) {
        more = store.check(store.fault.guarded(() => store.exports.varve_scan_next(store.h, cursor, COUNT_BATCH))) > 0;
        const bytes = store.memory.takeOut();
        count += readScanBatch(bytes, 0, bytes.length, false, false).count;
      }
    } finally {
      // The engine keeps a scan open that failed.
      store.closeScan(cursor);
    }
    return count;
  }

  /** Opens a scan in the engine; returns 0 for a scan without results. */
  #open(range: ByteRange, { limit, reverse, signal }: Course, want: number, snapshot: number): number {
    this.#source.ensureOpen();
    checkLimit(limit);
    signal?.throwIfAborted();
    if (range.empty || limit === 0) return 0;
    const { store } = this.#source;
    const { memory } = store;
    const sink = this.#sink;
    sink.bytes = memory.fresh().scratch;
    sink.at = 0;
    const keys = (want & Want.keys) !== 0;
    const values = (want & Want.values) !== 0;
    writeScanOpen(
      { range, reverse: reverse === true, keys, values, limit, snapshot, batchBytes: BATCH_BYTES_FIRST },
      sink,
    );
    if (sink.bytes !== memory.scratch) memory.put(sink.bytes.subarray(0, sink.at));
    const cursor = store.fault.guarded(() => store.exports.varve_scan_open(store.h, sink.at));
    return store.check(cursor);
  }
}
