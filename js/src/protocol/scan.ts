/**
 * The request that opens a scan, and the batches in the answers.
 *
 *   open   u16 flags | u16 snapshot | u32 limit | u32 batch bytes | u32 lower_len | u32 upper_len | lower | upper
 *   batch  u32 cursor (0: finished) | u32 count | u32 keys_bytes | u32 values_bytes
 *          | u32 key_end[count] if keys | u32 value_end[count] if values | keys, pad to 4 | values, pad to 4
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
  readonly batch_bytes: number;
}

const NO_LIMIT = 0xffff_ffff;
const NOTHING = new Uint8Array(0);

/** Appends the opening of a scan. */
export function writeScanOpen(scan: ScanRequest, sink: ByteSink): void {
  const { lower, upper } = scan.range;
  let flags =
    (scan.reverse ? ScanFlag.reverse : 0) | (scan.keys ? ScanFlag.keys : 0) | (scan.values ? ScanFlag.values : 0);
  if (lower !== undefined) flags |= ScanFlag.lower | (lower.exclusive ? ScanFlag.lowerExclusive : 0);
  if (scan.expiries) flags |= ScanFlag.expiries;
  if (upper !== undefined) flags |= ScanFlag.upper | (upper.exclusive ? ScanFlag.upperExclusive : 0);
  sink.u32(flags | (scan.snapshot << 16));
  sink.u32(Math.min(scan.limit ?? NO_LIMIT, NO_LIMIT));
  sink.u32(scan.batch_bytes);
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
  /** Keys one after another; key `i` ends at `key_ends[i]`. Empty when keys were not asked for. */
  readonly keys: Uint8Array;
  readonly key_ends: Ends;
  /** Stored values one after another; value `i` ends at `value_ends[i]`. Empty when values were not asked for. */
  readonly values: Uint8Array;
  readonly value_ends: Ends;
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
  has_keys: boolean,
  has_values: boolean,
): ScanBatch {
  if (end - start < 16) throw malformed();
  const [cursor, count, keys_bytes, values_bytes] = words(bytes, start, 4) as [number, number, number, number];
  const ends_bytes = count * 4 * (Number(has_keys) + Number(has_values));
  const keys_start = start + 16 + ends_bytes;
  const values_start = keys_start + ((keys_bytes + 3) & ~3);
  if (ends_bytes + keys_bytes + values_bytes > end - start - 16 || values_start + values_bytes > end) throw malformed();
  const key_ends = words(bytes, start + 16, has_keys ? count : 0);
  const value_ends = words(bytes, start + 16 + (has_keys ? count * 4 : 0), has_values ? count : 0);
  checkEnds(key_ends, keys_bytes);
  checkEnds(value_ends, values_bytes);
  return {
    cursor,
    count,
    keys: bytes.subarray(keys_start, keys_start + keys_bytes),
    key_ends,
    values: bytes.subarray(values_start, values_start + values_bytes),
    value_ends,
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
