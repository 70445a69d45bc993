/**
 * The request that opens a scan, and the batches in the answers.
 *
 *   open   u16 flags | u16 snapshot | u32 limit | u32 batch bytes | u32 lowerLen | u32 upperLen | lower | upper
 *   batch  u32 cursor (0: finished) | u32 count | u32 keysBytes | u32 valuesBytes
 *          | u32 keyEnd[count] if keys | u32 valueEnd[count] if values | keys, pad to 4 | values, pad to 4
 *
 * With the flag `expiries` a value begins with the expiry of its entry: u64 milliseconds since 1970, 0 for none.
 *
 * Invariant: ends grow and stay inside their blob, else `VARVE_INTERNAL`; parts that were not requested take no bytes.
 */

import type { ByteRange } from '../codec/range.ts';
import type { ByteSink } from '../codec/sink.ts';
import { malformed } from './frame-reader.ts';

/** Most bytes of a batch for an export, which fills one block; only the last entry may exceed them. */
export const EXPORT_BATCH: number = 256 * 1024;

/** Flags of an opening. */
export const ScanFlag = {
  reverse: 1,
  keys: 2,
  values: 4,
  lower: 8,
  lowerExclusive: 16,
  upper: 32,
  upperExclusive: 64,
  /** with values, and forward only */
  expiries: 128,
} as const;

/** The range of a scan, and what its batches contain. */
export interface ScanRequest {
  readonly range: ByteRange;
  readonly reverse: boolean;
  readonly keys: boolean;
  readonly values: boolean;
  /** Values begin with their expiries. */
  readonly expiries?: boolean;
  /** At most this many entries; undefined for all. */
  readonly limit: number | undefined;
  /** The snapshot to scan; 0 for the store as it is. */
  readonly snapshot: number;
  /** Wanted size of the first batch, in bytes (in entries, when it brings neither keys nor values). */
  readonly batchBytes: number;
}

const NO_LIMIT = 0xffff_ffff;
const NOTHING = new Uint8Array(0);

/** The `ScanFlag`s of an opening. */
export function flagsOf(scan: ScanRequest): number {
  const { lower, upper } = scan.range;
  let flags =
    (scan.reverse ? ScanFlag.reverse : 0) | (scan.keys ? ScanFlag.keys : 0) | (scan.values ? ScanFlag.values : 0);
  if (lower !== undefined) flags |= ScanFlag.lower | (lower.exclusive ? ScanFlag.lowerExclusive : 0);
  if (scan.expiries) flags |= ScanFlag.expiries;
  if (upper !== undefined) flags |= ScanFlag.upper | (upper.exclusive ? ScanFlag.upperExclusive : 0);
  return flags;
}

/** Appends the opening of a scan. */
export function writeScanOpen(scan: ScanRequest, sink: ByteSink): void {
  const { lower, upper } = scan.range;
  sink.u32(flagsOf(scan) | (scan.snapshot << 16));
  sink.u32(Math.min(scan.limit ?? NO_LIMIT, NO_LIMIT));
  sink.u32(scan.batchBytes);
  sink.u32(lower?.key.length ?? 0);
  sink.u32(upper?.key.length ?? 0);
  sink.append(lower?.key ?? NOTHING);
  sink.append(upper?.key ?? NOTHING);
}

/** One batch of a scan, as views of the bytes it came in. */
export interface ScanBatch {
  /** Cursor to ask for more with; 0 when the scan is finished. */
  readonly cursor: number;
  readonly count: number;
  /** Keys one after another; key `i` ends at `keyEnds[i]`. Empty when keys were not asked for. */
  readonly keys: Uint8Array;
  readonly keyEnds: Ends;
  /** Stored values one after another; value `i` ends at `valueEnds[i]`. Empty when values were not asked for. */
  readonly values: Uint8Array;
  readonly valueEnds: Ends;
}

/** The ends of keys or values. */
export type Ends = Uint32Array | readonly number[];

/** Up to this many words are read one by one: this is cheaper than a view of them. */
const WORDS_FEW = 8;

/** Reads the batch at `bytes[start..end]`. */
export function readScanBatch(
  bytes: Uint8Array,
  start: number,
  end: number,
  hasKeys: boolean,
  hasValues: boolean,
): ScanBatch {
  if (end - start < 16) throw malformed();
  const [cursor, count, keysBytes, valuesBytes] = words(bytes, start, 4) as [number, number, number, number];
  const endsBytes = count * 4 * (Number(hasKeys) + Number(hasValues));
  const keysStart = start + 16 + endsBytes;
  const valuesStart = keysStart + ((keysBytes + 3) & ~3);
  if (endsBytes + keysBytes + valuesBytes > end - start - 16 || valuesStart + valuesBytes > end) throw malformed();
  const keyEnds = words(bytes, start + 16, hasKeys ? count : 0);
  const valueEnds = words(bytes, start + 16 + (hasKeys ? count * 4 : 0), hasValues ? count : 0);
  checkEnds(keyEnds, keysBytes);
  checkEnds(valueEnds, valuesBytes);
  return {
    cursor,
    count,
    keys: bytes.subarray(keysStart, keysStart + keysBytes),
    keyEnds,
    values: bytes.subarray(valuesStart, valuesStart + valuesBytes),
    valueEnds,
  };
}

/** Words as a view if they are many and aligned (in a frame they are), else a copy. */
function words(bytes: Uint8Array, start: number, count: number): Ends {
  const offset = bytes.byteOffset + start;
  if (count > WORDS_FEW && offset % 4 === 0) return new Uint32Array(bytes.buffer, offset, count);
  const few: number[] = [];
  for (let i = 0; i < count; i++) {
    let word = 0;
    for (let at = 4; at-- > 0; ) word = word * 256 + (bytes[start + i * 4 + at] as number);
    few.push(word);
  }
  return few;
}

function checkEnds(ends: Ends, size: number): void {
  let last = 0;
  for (let i = 0; i < ends.length; i++) {
    const end = ends[i] as number;
    if (end < last) throw malformed();
    last = end;
  }
  if (last !== size) throw malformed();
}

/** Entries that one step of a count reads: this takes about a millisecond. */
export const COUNT_BATCH = 10_000;
