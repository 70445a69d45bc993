/**
 * The numbers of frames: what page and worker agree on, beside the engine's own (crates/varve/src/frame).
 *
 * Invariant: little-endian; every operation and every answer begins at a multiple of four.
 *
 *   request   u32 "VRF2" | u32 count | u64 client | u32 answered | u32 0 | operation*
 *             client: who sends it, a random number for each opening; answered: all requests before it have their answers
 *   operation u32 request | u8 op | u8 durability | u16 snapshot | u32 key_len | u32 value_len | key | value | pad to 4
 *             snapshot: what a read is of, what a batch's transaction read, what is opened or let go; 0 for none
 *   response  u32 "VRF2" | u32 count | answer*
 *   answer    u32 request | u8 status | u8[3] 0 | u32 payload_len | u32 0 | payload | pad to 4
 *
 * Numbers of requests rise by one and wrap. Numbers of scans and snapshots are chosen by the client, and are its own.
 *
 * The operations of a frame run in order and see the frame's earlier writes; all its writes are one group commit.
 */

import type { Durability } from '../types.ts';

export const FRAME_MAGIC = 0x3246_5256;
export const FRAME_HEADER_BYTES = 24;
export const RESPONSE_HEADER_BYTES = 8;
export const OP_HEADER_BYTES = 16;
export const ANSWER_HEADER_BYTES = 16;

/** Operations. */
export const Op = {
  get: 1,
  has: 2,
  getEntry: 3,
  set: 4,
  delete: 5,
  /** value: u32 count, then items { u8 BatchKind, u8 ItemFlag, u16 0, u32 klen, u32 vlen, key, value, pad to 4 } */
  batch: 6,
  /** key: u32 cursor, not 0, in the place of one that has that number; value: the picture in scan.ts. Answer: what it sees, and a batch */
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
  /** takes the snapshot of the header, in the place of one that has that number; answer: what it sees */
  snapshotOpen: 13,
  /** lets the snapshot of the header go */
  snapshotClose: 14,
  /** opens the snapshot of the header again that was taken in another process; value and answer: what it sees */
  snapshotRestore: 15,
  /** value: the picture in changes/page.ts */
  changes: 16,
} as const;
export type OpCode = (typeof Op)[keyof typeof Op];

/** Kinds of a batch's items. */
export const BatchKind = { delete: 0, set: 1, deleteRange: 2, readKey: 3, readRange: 4 } as const;

/** What the value of a batch's item begins with, in this order, before the value itself; vlen counts it. */
export const ItemFlag = {
  /** u64: milliseconds after which the entry expires */
  expiresIn: 1,
  /** u64: the sequence that the key must have; 0 for none */
  ifSequence: 2,
  /** with `expiresIn`: the milliseconds are since 1970 */
  expiresAt: 4,
} as const;

/** What a scan or a snapshot sees: u64 sequence, u64 milliseconds since 1970; those are 0 for one that cannot be opened again. */
export const MOMENT_BYTES = 16;
/** What the payload of getEntry begins with: u64 sequence, f64 expiry. */
export const ENTRY_HEAD_BYTES = 16;

/** How an answer went. */
export const Status = { ok: 0, missing: 1, error: 2 } as const;

/** A length that stands for "no value". */
export const ABSENT = 0xffff_ffff;

const LEVELS: readonly (Durability | undefined)[] = [undefined, 'memory', 'relaxed', 'strict'];

/** The number of a durability level; 0 stands for operations that write nothing. */
export function levelNumber(durability: Durability): number {
  return LEVELS.indexOf(durability);
}

/** The durability of a level number; undefined for a number that is none. */
export function levelOf(number: number): Durability | undefined {
  return LEVELS[number];
}
