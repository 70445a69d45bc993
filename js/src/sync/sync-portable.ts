/**
 * Exports and imports of the synchronous store, loaded when the first of them is called.
 *
 * Invariant: a scan of the engine's is closed exactly once: by its last batch or by `close`. Between blocks others have
 * their turns, as streams are asynchronous.
 */

import type { Bound } from '../codec/range.ts';
import { ByteSink } from '../codec/sink.ts';
import { exportTo, type Moment } from '../portable/export.ts';
import { importFrom } from '../portable/import.ts';
import { BATCH_BYTES, type RawScan, type RawStore } from '../portable/raw-store.ts';
import type { ExportOptions, ImportOptions, ImportReport, ImportSource } from '../portable/types.ts';
import { readScanBatch, type ScanBatch, writeScanOpen } from '../protocol/scan.ts';
import { checkDurability } from '../store/options.ts';
import type { Durability, KeyCodec } from '../types.ts';
import { faultOfEngine, guarded } from '../wasm/fault.ts';
import type { EngineStore } from '../wasm/store.ts';

/** What the store hands in. */
export interface SyncPortableParts<K> {
  readonly store: EngineStore;
  readonly codec: KeyCodec<K> | undefined;
  /** Throws once the store is closed. */
  ensureOpen(): void;
  get(key: Uint8Array, snapshot: number): Uint8Array | undefined;
  commit(items: Uint8Array, durability: Durability | undefined): void;
  /** Resolves when what held writers up is done. */
  room(): Promise<void>;
}

/** Writes what a snapshot holds into a stream. */
export function exportStore<K>(
  parts: SyncPortableParts<K>,
  snapshot: Moment,
  writable: WritableStream<Uint8Array>,
  options: ExportOptions<K>,
): Promise<void> {
  return exportTo(rawStore(parts), snapshot, writable, options, parts.codec);
}

/** Reads an export into the store. */
export async function importStore<K>(
  parts: SyncPortableParts<K>,
  source: ImportSource,
  options: ImportOptions,
): Promise<ImportReport> {
  if (options.durability !== undefined) checkDurability(options.durability);
  return importFrom(rawStore(parts), source, options);
}

function rawStore<K>(parts: SyncPortableParts<K>): RawStore {
  return {
    get: async (key, snapshot) => {
      parts.ensureOpen();
      return parts.get(key, snapshot);
    },
    scan: (range, snapshot) => new SyncRawScan(parts, range, snapshot),
    commit: async (items, durability) => {
      for (;;) {
        try {
          return parts.commit(items, durability);
        } catch (error) {
          if ((error as { code?: unknown })?.code !== 'VARVE_BUSY') throw error;
          await parts.room();
        }
      }
    },
  };
}

type Range = { readonly lower: Bound | undefined; readonly upper: Bound | undefined };

class SyncRawScan implements RawScan {
  readonly #parts: Pick<SyncPortableParts<never>, 'store' | 'ensureOpen'>;
  #cursor: number;

  constructor(parts: Pick<SyncPortableParts<never>, 'store' | 'ensureOpen'>, range: Range, snapshot: number) {
    this.#parts = parts;
    const { store } = parts;
    parts.ensureOpen();
    const sink = new ByteSink(64);
    const all = {
      reverse: false,
      limit: undefined,
      batch_bytes: BATCH_BYTES,
      keys: true,
      values: true,
      expiries: true,
    };
    writeScanOpen({ ...all, range: { ...range, empty: false }, snapshot }, sink);
    store.memory.put(sink.bytes.subarray(0, sink.at));
    this.#cursor = store.check(guarded(() => store.exports.varve_scan_open(store.h, sink.at)));
  }

  take(): ScanBatch | undefined {
    if (this.#cursor === 0) return undefined;
    const { store, ensureOpen } = this.#parts;
    ensureOpen();
    const status = guarded(() => store.exports.varve_scan_next(store.h, this.#cursor, BATCH_BYTES));
    if (status <= 0) this.#cursor = 0;
    store.check(status);
    const bytes = store.memory.takeOut();
    return readScanBatch(bytes, 0, bytes.length, true, true);
  }

  close(): void {
    const { store } = this.#parts;
    if (this.#cursor !== 0 && faultOfEngine() === undefined) {
      guarded(() => store.exports.varve_scan_close(store.h, this.#cursor));
    }
    this.#cursor = 0;
  }
}
