/**
 * A scan of the synchronous store below its codecs, as exports use it.
 *
 * Invariant: it is closed in the engine exactly once: by its last batch or by `close`.
 */

import { ByteSink } from '../codec/sink.ts';
import type { RawRange, RawScan } from '../portable/raw-store.ts';
import { EXPORT_BATCH, readScanBatch, type ScanBatch, writeScanOpen } from '../protocol/scan.ts';
import type { EngineStore } from '../wasm/store.ts';

interface ScanOwner {
  readonly store: EngineStore;
  /** Throws once the store is closed. */
  ensureOpen(): void;
}

/** Batches of keys, and of values with their expiries. */
export class SyncRawScan implements RawScan {
  readonly #owner: ScanOwner;
  #cursor: number;

  constructor(owner: ScanOwner, range: RawRange, snapshot: number) {
    this.#owner = owner;
    const { store } = owner;
    owner.ensureOpen();
    const sink = new ByteSink(64);
    const all = {
      reverse: false,
      limit: undefined,
      batchBytes: EXPORT_BATCH,
      keys: true,
      values: true,
      expiries: true,
    };
    writeScanOpen({ ...all, range: { ...range, empty: false }, snapshot }, sink);
    store.memory.put(sink.bytes.subarray(0, sink.at));
    this.#cursor = store.check(store.fault.guarded(() => store.exports.varve_scan_open(store.h, sink.at)));
  }

  take(): ScanBatch | undefined {
    if (this.#cursor === 0) return undefined;
    const { store, ensureOpen } = this.#owner;
    ensureOpen();
    const status = store.fault.guarded(() => store.exports.varve_scan_next(store.h, this.#cursor, EXPORT_BATCH));
    // The engine keeps a scan open that failed.
    if (store.check(status) === 0) this.#cursor = 0;
    const bytes = store.memory.takeOut();
    return readScanBatch(bytes, 0, bytes.length, true, true);
  }

  close(): void {
    if (this.#cursor !== 0) this.#owner.store.closeScan(this.#cursor);
    this.#cursor = 0;
  }
}
