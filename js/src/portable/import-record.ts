/**
 * The progress of an import: a reserved entry of the target store.
 *
 *   key      ff "import"
 *   value    id of the export 16 B | u64 offset | u64 entries | u64 blocks | u64 version of the data | digest of the last block 32 B
 *            | [u64 the sequence that it must have]
 *
 * Invariant: it is the last item of the batch with the entries of the block that it names, so if it is the last write to the store, those
 * entries are still there. An import that goes on writes it again, with the sequence after its own: if it has another one, there was a
 * write in between, and it does not count. It is deleted when the import is complete, or cannot go on from it.
 */

import { ByteSink } from '../codec/sink.ts';
import { DIGEST_BYTES, getU64, ID_BYTES, putU64 } from './block.ts';

/** The reserved key. */
export const IMPORT_KEY: Uint8Array = Uint8Array.of(0xff, ...new TextEncoder().encode('import'));

const RECORD_BYTES = ID_BYTES + 4 * 8 + DIGEST_BYTES;

/** The position of an import: after the block with this digest. */
export interface ImportRecord {
  readonly id: Uint8Array;
  readonly offset: number;
  readonly entries: number;
  readonly blocks: number;
  readonly version: number;
  readonly digest: Uint8Array;
}

/** An entry that is perhaps a record. */
interface RecordEntry {
  readonly value: Uint8Array;
  readonly sequence: number;
}

/** The value of a record, which counts only with this sequence if one is given. */
export function encodeRecord(
  { id, offset, entries, blocks, version, digest }: ImportRecord,
  sequence?: number,
): Uint8Array {
  const sink = new ByteSink(RECORD_BYTES);
  sink.append(id);
  for (const number of [offset, entries, blocks, version]) putU64(sink, number);
  sink.append(digest);
  if (sequence !== undefined) putU64(sink, sequence);
  return sink.copy();
}

/** The record of an entry; undefined if it does not count, or if other code wrote it. */
export function decodeRecord({ value, sequence }: RecordEntry): ImportRecord | undefined {
  if (value.length !== RECORD_BYTES && value.length !== RECORD_BYTES + 8) return undefined;
  const view = new DataView(value.buffer, value.byteOffset, value.length);
  if (value.length > RECORD_BYTES && getU64(view, RECORD_BYTES) !== sequence) return undefined;
  return {
    id: value.slice(0, ID_BYTES),
    offset: getU64(view, ID_BYTES),
    entries: getU64(view, ID_BYTES + 8),
    blocks: getU64(view, ID_BYTES + 16),
    version: getU64(view, ID_BYTES + 24),
    digest: value.slice(RECORD_BYTES - DIGEST_BYTES, RECORD_BYTES),
  };
}
