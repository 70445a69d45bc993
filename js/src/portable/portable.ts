/**
 * Exports and imports of the asynchronous store, loaded when the first of them is called: few programs need them.
 *
 * Invariant: what the page has loaded already is handed in, not imported, so that it is not split off for this.
 */

import { ENTRY_HEAD_BYTES, levelNumber, Op, Status } from '../protocol/frame.ts';
import { type Operation, rawBytes } from '../protocol/frame-writer.ts';
import { EXPORT_BATCH } from '../protocol/scan.ts';
import type { Cursor } from '../store/cursor.ts';
import { batch_operation, type ScanOperations } from '../store/operations.ts';
import { checkDurability } from '../store/options.ts';
import type { Client } from '../worker/client.ts';
import { exportTo, type Moment } from './export.ts';
import { importFrom } from './import.ts';
import type { RawEntry, RawStore } from './raw-store.ts';
import type { ExportWanted, ImportOptions, ImportReport, ImportSource } from './types.ts';

/** What the store hands in. */
export interface PortableParts {
  readonly client: Client;
  readonly Cursor: typeof Cursor;
  /** Scans that bring keys and values. */
  readonly scan: ScanOperations;
  /** Number of the store's durability. */
  readonly level: number;
}

/** Writes what a snapshot holds into a stream. */
export function exportStore(
  parts: PortableParts,
  snapshot: Moment,
  writable: WritableStream<Uint8Array>,
  wanted: ExportWanted,
): Promise<void> {
  return exportTo(rawStore(parts), snapshot, writable, wanted);
}

/** Reads an export into the store. */
export async function importStore(
  parts: PortableParts,
  source: ImportSource,
  options: ImportOptions,
): Promise<ImportReport> {
  if (options.durability !== undefined) checkDurability(options.durability);
  return importFrom(rawStore(parts), source, options);
}

const get_raw: Operation<Uint8Array, undefined, RawEntry | undefined> = {
  code: Op.getEntry,
  key: rawBytes,
  value: undefined,
  read: (answer) => {
    if (answer.status === Status.missing) return undefined;
    const { sequence } = answer.entryHead();
    return { value: answer.bytes.slice(answer.start + ENTRY_HEAD_BYTES, answer.end), sequence };
  },
};

function rawStore({ client, Cursor, scan, level }: PortableParts): RawStore {
  const all = { reverse: false, limit: undefined, batch_bytes: EXPORT_BATCH, keys: true, values: true, expiries: true };
  return {
    get: (key, snapshot) => client.submit(get_raw, key, undefined, snapshot << 8),
    scan: (range, snapshot) => new Cursor(client, scan, { ...all, range: { ...range, empty: false }, snapshot }),
    commit: (items, durability) =>
      client.submit(batch_operation, undefined, items, durability === undefined ? level : levelNumber(durability)),
  };
}
