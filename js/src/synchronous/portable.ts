/**
 * Exports and imports of the synchronous store, loaded at the first export or import.
 *
 * Invariant: between blocks other code has its turns, as streams are asynchronous. Code that the store has loaded already is
 * passed in, not imported, so that bundlers do not split it off for this.
 */

import { type ExportedSnapshot, type ExportRequest, exportTo } from '../portable/export.ts';
import { importFrom } from '../portable/import.ts';
import type { RawEntry, RawStore } from '../portable/raw-store.ts';
import type { ImportOptions, ImportReport, ImportSource } from '../portable/types.ts';
import { checkDurability } from '../store/options.ts';
import type { Durability } from '../types.ts';

/** The parts that the store passes in. */
export interface SyncPortableParts {
  readonly scan: RawStore['scan'];
  /** Throws once the store is closed. */
  ensureOpen(): void;
  get(key: Uint8Array, snapshot: number): RawEntry | undefined;
  commit(items: Uint8Array, durability: Durability | undefined): void;
}

/** Writes the contents of a snapshot into a stream. */
export function exportStore(
  parts: SyncPortableParts,
  snapshot: ExportedSnapshot,
  writable: WritableStream<Uint8Array>,
  wanted: ExportRequest,
): Promise<void> {
  return exportTo(rawStore(parts), snapshot, writable, wanted);
}

/** Reads an export into the store. */
export async function importStore(
  parts: SyncPortableParts,
  source: ImportSource,
  options: ImportOptions,
): Promise<ImportReport> {
  if (options.durability !== undefined) checkDurability(options.durability);
  return importFrom(rawStore(parts), source, options);
}

function rawStore(parts: SyncPortableParts): RawStore {
  return {
    get: async (key, snapshot) => {
      parts.ensureOpen();
      return parts.get(key, snapshot);
    },
    scan: parts.scan,
    commit: async (items, durability) => parts.commit(items, durability),
  };
}
