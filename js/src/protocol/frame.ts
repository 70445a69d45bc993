/**
 * The numbers of frames: the format on which page and worker agree; the engine has its own copy (crates/varve/src/frame).
 *
 * Invariant: little-endian; every operation and every answer begins at a multiple of four.
 *
 *   request   u32 "VRF2" | u32 count | u64 client | u32 answered | u32 flags | operation*
 *             client: the sender, a random number for each opening; answered: all requests before it have their answers
 *             flags: `RequestFlag`s for the server, which sets them to 0 for the engine
 *   operation u32 request | u8 op | u8 durability | u16 snapshot | u32 key_len | u32 value_len | key | value | pad to 4
 *             snapshot: of a read, of a batch's transaction, or the one to open or release; 0 for none
 *   response  u32 "VRF2" | u32 count | answer*; the server puts `ResponseFlag`s into the two highest bits of the count
 *   answer    u32 request | u8 status | u8 expires | u16 0 | u32 payload_len | u32 0 | payload | pad to 4
 *             expires: 1 if an entry expires that getMany or the first batch of a scan brings
 *
 * Numbers of requests rise by one and wrap. The client chooses the numbers of scans and snapshots; each client has its own numbers.
 *
 * The operations of a frame run in order and see the frame's earlier writes; all its writes are one group commit.
 */

import type { Durability } from '../types.ts';

export const FRAME_MAGIC = 0x3246_5256;
export const FRAME_HEADER_BYTES = 24;
export const RESPONSE_HEADER_BYTES = 8;
export const OP_HEADER_BYTES = 16;
/** Bytes of an item of a batch before its key. */
export const ITEM_HEADER_BYTES = 12;
export const ANSWER_HEADER_BYTES = 16;

/** Operations. */
export const Op = {
  get: 1,
  has: 2,
  getEntry: 3,
  set: 4,
  /** value: empty, or one byte if the status of the answer is to be `missing` when the key was absent */
  delete: 5,
  /** value: u32 count, then items { u8 BatchKind, u8 ItemFlag, u16 0, u32 klen, u32 vlen, key, value, pad to 4 } */
  batch: 6,
  /** key: u32 cursor, not 0, replaces one with that number; value: see scan.ts. Answer: its read point, and a batch */
  scanOpen: 7,
  /** key: u32 cursor; value: u32 bytes of the batch wanted */
  scanNext: 8,
  /** key: u32 cursor */
  scanClose: 9,
  /** value: u32 count, then { u32 klen, key, pad to 4 } */
  getMany: 10,
  /** key: start; value: exclusive end, empty for the end of the store */
  deleteRange: 11,
  /** flushes the log */
  sync: 12,
  /** takes the snapshot of the header, replaces one with that number; answer: its read point */
  snapshotOpen: 13,
  /** releases the snapshot of the header */
  snapshotClose: 14,
  /** opens the snapshot of the header, which was taken in another process, again; value and answer: its read point */
  snapshotRestore: 15,
  /** value: see change-page.ts */
  changes: 16,
} as const;
export type OpCode = (typeof Op)[keyof typeof Op];

/** Kinds of a batch's items. */
export const BatchKind = { delete: 0, set: 1, deleteRange: 2, readKey: 3, readRange: 4 } as const;

/** The fields at the beginning of a batch item's value, in this order, before the value itself; vlen includes them. */
export const ItemFlag = {
  /** u64: milliseconds after which the entry expires */
  expiresIn: 1,
  /** u64: the sequence that the key must have; 0 for none */
  ifSequence: 2,
  /** with `expiresIn`: the milliseconds are since 1970 */
  expiresAt: 4,
} as const;

/** A read point of a scan or a snapshot: u64 sequence, u64 milliseconds since 1970, which are 0 if it cannot be opened again. */
export const READ_POINT_BYTES = 16;
/** The head of a getEntry payload: u64 sequence, f64 expiry. */
export const ENTRY_HEAD_BYTES = 16;

/** The status of an answer. */
export const Status = { ok: 0, missing: 1, error: 2 } as const;

/** A message copies a frame of up to this many bytes in less time than a transfer takes. */
const COPIED_BYTES_MAX = 1536;

/** The buffers to transfer with a frame: a long frame itself; of a short one, nothing. */
export function transferOf(frame: ArrayBuffer): ArrayBuffer[] {
  return frame.byteLength > COPIED_BYTES_MAX ? [frame] : [];
}

/** A length that stands for "no value". */
export const ABSENT = 0xffff_ffff;

const LEVELS: readonly (Durability | undefined)[] = [undefined, 'memory', 'relaxed', 'strict'];

/** The number of a durability level; 0 stands for operations that write nothing. */
export function levelNumber(durability: Durability): number {
  return LEVELS.indexOf(durability);
}

/** The durability of a level number; undefined for a number that is not a level. */
export function levelOf(number: number): Durability | undefined {
  return LEVELS[number];
}
