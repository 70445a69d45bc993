/**
 * Exports and imports of the asynchronous store. Few programs need them, so they are loaded at the first call.
 *
 * Invariant: code that the page has already loaded is passed in, not imported, so that a bundler does not split it off for this.
 */

import type { Client } from '../client/client.ts';
import { batchOperation, type ScanOperations } from '../client/operations.ts';
import type { RawEntry, RawStore } from '../portable/raw-store.ts';
import { ENTRY_HEAD_BYTES, levelNumber, Op, Status } from '../protocol/frame.ts';
import { type Operation, rawBytes } from '../protocol/frame-writer.ts';
import { EXPORT_BATCH } from '../protocol/scan.ts';
import type { Cursor } from './cursor.ts';

/** The parts that the store passes in. */
export interface PortableParts {
  readonly client: Client;
  readonly Cursor: typeof Cursor;
  /** Scans that return keys and values. */
  readonly scan: ScanOperations;
  /** The number of the store's durability level. */
  readonly level: number;
}

const getRaw: Operation<Uint8Array, undefined, RawEntry | undefined> = {
  code: Op.getEntry,
  key: rawBytes,
  value: undefined,
  read: (answer) => {
    if (answer.status === Status.missing) return undefined;
    const { sequence } = answer.entryHead();
    return { value: answer.bytes.slice(answer.start + ENTRY_HEAD_BYTES, answer.end), sequence };
  },
};

/** The store below its codecs. */
export function rawStore({ client, Cursor, scan, level }: PortableParts): RawStore {
  const all = { reverse: false, limit: undefined, batchBytes: EXPORT_BATCH, keys: true, values: true, expiries: true };
  return {
    get: (key, snapshot) => client.submit(getRaw, key, undefined, snapshot << 8),
    scan: (range, snapshot) => new Cursor(client, scan, { ...all, range: { ...range, empty: false }, snapshot }),
    commit: (items, durability) =>
      client.submit(batchOperation, undefined, items, durability === undefined ? level : levelNumber(durability)),
  };
}

export * from '../portable/portable.ts';
