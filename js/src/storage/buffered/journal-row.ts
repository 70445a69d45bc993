/**
 * A row of the journal: the changes of one commit, except the chunks that it put whole.
 *
 *     u32 slots | { u32 slot, f64 cut, f64 size }*      first cut there, then that long: zeros, but for the chunks of this row
 *     u32 puts  | { u32 slot, u32 index }*              chunks of the commit: newer than any row before
 *     { u32 slot, u32 index, u32 from, u32 bytes, bytes }*      from ffffffff, without bytes: all of this chunk is zeros
 *
 * Little-endian. Invariant: rows read in order over the chunks of the store give the slots as they were after the last
 * commit. A row without bytes changes nothing.
 */

import type { ChunkName } from './chunk-store.ts';

/** How a slot's length changed. */
interface Resize {
  readonly slot: number;
  /** The shortest length that it had in between. */
  readonly cut: number;
  readonly size: number;
}

/** Bytes of a chunk. */
export interface Patch extends ChunkName {
  readonly from: number;
  readonly bytes: Uint8Array;
}

/** The contents of a row. */
interface JournalRow {
  readonly resizes: readonly Resize[];
  readonly puts: readonly ChunkName[];
  readonly patches: readonly Patch[];
}

/** Bytes of a patch before its own. */
export const PATCH_HEAD_BYTES = 16;
/** The `from` of a patch that makes a chunk all zeros. */
export const ALL_ZEROS = 0xffff_ffff;
/** Bytes of a row that changes nothing. */
export const EMPTY_ROW_BYTES = 8;

/** A row as bytes. */
export function encodeRow({ resizes, puts, patches }: JournalRow): Uint8Array<ArrayBuffer> {
  let length = EMPTY_ROW_BYTES + resizes.length * 20 + puts.length * 8;
  for (const { bytes } of patches) length += PATCH_HEAD_BYTES + bytes.length;
  const row = new Uint8Array(length);
  const view = new DataView(row.buffer);
  let at = 0;
  const u32 = (value: number): void => {
    view.setUint32(at, value, true);
    at += 4;
  };
  u32(resizes.length);
  for (const { slot, cut, size } of resizes) {
    u32(slot);
    view.setFloat64(at, cut, true);
    view.setFloat64(at + 8, size, true);
    at += 16;
  }
  u32(puts.length);
  for (const { slot, index } of puts) {
    u32(slot);
    u32(index);
  }
  for (const { slot, index, from, bytes } of patches) {
    u32(slot);
    u32(index);
    u32(from);
    u32(bytes.length);
    row.set(bytes, at);
    at += bytes.length;
  }
  return row;
}

/** Decodes the bytes of a row. */
export function decodeRow(row: Uint8Array): JournalRow {
  const resizes: Resize[] = [];
  const puts: ChunkName[] = [];
  const patches: Patch[] = [];
  if (row.length === 0) return { resizes, puts, patches };
  const view = new DataView(row.buffer, row.byteOffset, row.length);
  let at = 0;
  const u32 = (): number => {
    at += 4;
    return view.getUint32(at - 4, true);
  };
  for (let left = u32(); left > 0; left--) {
    resizes.push({ slot: u32(), cut: view.getFloat64(at, true), size: view.getFloat64(at + 8, true) });
    at += 16;
  }
  for (let left = u32(); left > 0; left--) puts.push({ slot: u32(), index: u32() });
  while (at < row.length) {
    const [slot, index, from, length] = [u32(), u32(), u32(), u32()];
    patches.push({ slot, index, from, bytes: row.subarray(at, at + length) });
    at += length;
  }
  return { resizes, puts, patches };
}
