/**
 * The keys and ranges that the operations of a request frame read and write: for leases.
 *
 * Invariant: nothing that an operation writes is missing. Of what it reads, only what its client may keep is here: points and scans of
 * the present.
 */

import { textOfBytes } from '../codec/byte-text.ts';
import { Footprint, type TextRange } from './footprint.ts';
import { BatchKind, ITEM_HEADER_BYTES, ItemFlag, OP_HEADER_BYTES, Op } from './frame.ts';
import { type FrameOperation, operationsOf } from './frame-bytes.ts';
import { ScanFlag } from './scan.ts';

/** A batch with more items counts as a write of everything. */
const ITEMS_MAX = 256;

/** A write of a batch. */
interface BatchWrite {
  /** A `BatchKind`. */
  readonly kind: number;
  readonly key: Uint8Array;
  /** The value; the end of a range. */
  readonly value: Uint8Array;
  readonly isExpiring: boolean;
}

/** The writes of a batch; undefined if it has more items than are worth looking at. */
export function writesOfBatch(batch: Uint8Array): BatchWrite[] | undefined {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.length);
  const count = view.getUint32(0, true);
  if (count > ITEMS_MAX) return undefined;
  const writes: BatchWrite[] = [];
  let at = 4;
  for (let i = 0; i < count; i++) {
    const kind = batch[at] as number;
    const flags = batch[at + 1] as number;
    const keyAt = at + ITEM_HEADER_BYTES;
    const valueAt = keyAt + view.getUint32(at + 4, true);
    const end = valueAt + view.getUint32(at + 8, true);
    const isExpiring = (flags & ItemFlag.expiresIn) !== 0;
    const fields = (isExpiring ? 8 : 0) + ((flags & ItemFlag.ifSequence) !== 0 ? 8 : 0);
    if (kind === BatchKind.set || kind === BatchKind.delete || kind === BatchKind.deleteRange) {
      writes.push({
        kind,
        key: batch.subarray(keyAt, valueAt),
        value: batch.subarray(valueAt + fields, end),
        isExpiring,
      });
    }
    at = (end + 3) & ~3;
  }
  return writes;
}

/** A range of bytes as text; an empty end is the end of the store. */
export function textRange(start: Uint8Array, end: Uint8Array): TextRange {
  return [textOfBytes(start), end.length === 0 ? undefined : textOfBytes(end)];
}

/** The key and the value of an operation, and the number in its header of the snapshot that it reads. */
function partsOf({ bytes }: FrameOperation): { snapshot: number; key: Uint8Array; value: Uint8Array } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const valueAt = OP_HEADER_BYTES + view.getUint32(8, true);
  const value = bytes.subarray(valueAt, valueAt + view.getUint32(12, true));
  return { snapshot: view.getUint16(6, true), key: bytes.subarray(OP_HEADER_BYTES, valueAt), value };
}

/** The keys and ranges that a frame writes. */
export function writesOf(frame: Uint8Array): Footprint {
  const all = new Footprint();
  for (const operation of operationsOf(frame)) {
    const { code } = operation;
    const { key, value } = partsOf(operation);
    if (code === Op.set || code === Op.delete) all.add(textOfBytes(key));
    else if (code === Op.deleteRange) all.addRange(...textRange(key, value));
    else if (code === Op.batch) {
      const writes = writesOfBatch(value);
      if (writes === undefined) all.addEverything();
      for (const { kind, key: start, value: end } of writes ?? []) {
        if (kind === BatchKind.deleteRange) all.addRange(...textRange(start, end));
        else all.add(textOfBytes(start));
      }
    }
  }
  return all;
}

/** The keys and ranges that a frame reads. */
export function readsOf(frame: Uint8Array): Footprint {
  const all = new Footprint();
  for (const operation of operationsOf(frame)) {
    const { code } = operation;
    const { snapshot, key, value } = partsOf(operation);
    if (snapshot !== 0) continue;
    if (code === Op.getEntry || code === Op.has) all.add(textOfBytes(key));
    else if (code === Op.getMany) addKeys(value, all);
    else if (code === Op.scanOpen) addScan(value, all);
  }
  return all;
}

/** The keys of getMany: u32 count, then { u32 length, key, pad to 4 }. */
function addKeys(keys: Uint8Array, all: Footprint): void {
  const view = new DataView(keys.buffer, keys.byteOffset, keys.length);
  let at = 4;
  for (let left = view.getUint32(0, true); left > 0; left--) {
    const end = at + 4 + view.getUint32(at, true);
    all.add(textOfBytes(keys.subarray(at + 4, end)));
    at = (end + 3) & ~3;
  }
}

/** The range of a scan: its layout is in scan.ts. */
function addScan(opening: Uint8Array, all: Footprint): void {
  const view = new DataView(opening.buffer, opening.byteOffset, opening.length);
  if (view.getUint16(2, true) !== 0) return;
  const flags = view.getUint16(0, true);
  const lowerAt = 20;
  const upperAt = lowerAt + view.getUint32(12, true);
  const upper = opening.subarray(upperAt, upperAt + view.getUint32(16, true));
  all.addRange(...scanRange(flags, opening.subarray(lowerAt, upperAt), upper));
}

/** The range of a scan with these `ScanFlag`s: at most one key more than the scan reads. */
export function scanRange(flags: number, lower: Uint8Array, upper: Uint8Array): TextRange {
  const end = (flags & ScanFlag.upper) === 0 ? undefined : textOfBytes(upper);
  // The next text after that of an inclusive bound.
  const isExclusive = (flags & ScanFlag.upperExclusive) !== 0;
  return [textOfBytes(lower), end === undefined || isExclusive ? end : `${end}\0`];
}
