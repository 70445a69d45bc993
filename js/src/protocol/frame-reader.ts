/**
 * Walks the answers of a response frame (its layout is in frame.ts) and reads their payloads.
 *
 * Invariant: an answer is handed out only when all of it lies inside the frame; anything else gives `VARVE_INTERNAL`.
 * Payloads are read in place: the bytes in them are views of the frame.
 */

import { readUtf8 } from '../codec/text.ts';
import { codeNumber, VarveError } from '../errors.ts';
import type { Receipt } from '../types.ts';
import { EngineConflict } from './conflict.ts';
import {
  ABSENT,
  ANSWER_HEADER_BYTES,
  FRAME_MAGIC,
  levelOf,
  READ_POINT_BYTES,
  RESPONSE_HEADER_BYTES,
  Status,
} from './frame.ts';
import { ResponseFlag } from './lease.ts';

const FLAGS = ResponseFlag.granted | ResponseFlag.isNew;
const CONFLICT = codeNumber('VARVE_CONFLICT');

/** One frame; after `next()` its fields describe the next answer. */
export class FrameReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  #left: number;
  #next = RESPONSE_HEADER_BYTES;

  /** Request number of the answer. */
  request = 0;
  /** A `Status`. */
  status = 0;
  /** The frame's `ResponseFlag`s. */
  readonly flags: number;
  /** Whether an entry in the answer to a getMany or to the opening of a scan expires. */
  expires = false;
  /** The start of the payload in `bytes`. */
  start = 0;
  end = 0;

  constructor(frame: ArrayBuffer) {
    this.bytes = new Uint8Array(frame);
    this.#view = new DataView(frame);
    if (frame.byteLength < RESPONSE_HEADER_BYTES || this.u32(0) !== FRAME_MAGIC) throw malformed();
    const count = this.u32(4);
    this.flags = count & FLAGS;
    this.#left = count & ~FLAGS;
  }

  /** Whether the client may keep what it has read with this frame. */
  get isGranted(): boolean {
    return (this.flags & ResponseFlag.granted) !== 0;
  }

  /** Steps to the next answer; false when there is none left. */
  next(): boolean {
    const at = this.#next;
    const size = this.bytes.length;
    if (this.#left === 0) {
      if (at !== size) throw malformed();
      return false;
    }
    if (size - at < ANSWER_HEADER_BYTES) throw malformed();
    this.#left--;
    this.request = this.u32(at);
    this.status = this.bytes[at + 4] as number;
    this.expires = this.bytes[at + 5] !== 0;
    this.start = at + ANSWER_HEADER_BYTES;
    const length = this.u32(at + 8);
    if (length > size - this.start || this.status > Status.error) throw malformed();
    this.end = this.start + length;
    this.#next = (this.end + 3) & ~3;
    if (this.#next > size) throw malformed();
    return true;
  }

  /** The error of an answer with the status `error`: u32 code, text; for a conflict u32 code, u64 sequence found, key. */
  error(): VarveError {
    this.#need(4);
    const number = this.u32(this.start);
    if (number === CONFLICT) {
      this.#need(12);
      return new EngineConflict(this.bytes.slice(this.start + 12, this.end), this.u64(this.start + 4));
    }
    return VarveError.fromNumber(number, readUtf8(this.bytes, this.start + 4, this.end));
  }

  /** The receipt of a write: u64 sequence, u32 level. */
  receipt(): Receipt {
    this.#need(12);
    const durability = levelOf(this.u32(this.start + 8));
    if (durability === undefined) throw malformed();
    return { sequence: this.u64(this.start), durability };
  }

  /** The head of a getEntry payload: u64 sequence, f64 expiry in milliseconds; the value begins at byte 16. */
  entryHead(): { sequence: number; expiresAt: Date | undefined } {
    this.#need(16);
    const ms = this.#view.getFloat64(this.start + 8, true);
    return { sequence: this.u64(this.start), expiresAt: ms === 0 ? undefined : new Date(ms) };
  }

  /** The read point of a scan or a snapshot. */
  readPoint(): ReadPoint {
    this.#need(READ_POINT_BYTES);
    return { sequence: this.u64(this.start), nowMs: this.u64(this.start + 8) };
  }

  /** The values of a getMany payload: u32 count, then { u32 length or ABSENT, value, pad to 4 }. */
  many<V>(read: (bytes: Uint8Array, start: number, end: number) => V): (V | undefined)[] {
    this.#need(4);
    let at = this.start + 4;
    const count = this.u32(this.start);
    if (count > (this.end - at) / 4) throw malformed();
    const values = new Array<V | undefined>(count);
    for (let i = 0; i < count; i++) {
      if (this.end - at < 4) throw malformed();
      const length = this.u32(at);
      at += 4;
      if (length === ABSENT) {
        values[i] = undefined;
        continue;
      }
      if (length > this.end - at) throw malformed();
      values[i] = read(this.bytes, at, at + length);
      at = (at + length + 3) & ~3;
    }
    return values;
  }

  /** A little-endian u32 of the frame. */
  u32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  /** A little-endian u64 of the frame, as a number: sequences stay below 2^53. */
  u64(at: number): number {
    return this.u32(at) + this.u32(at + 4) * 0x1_0000_0000;
  }

  #need(bytes: number): void {
    if (this.end - this.start < bytes) throw malformed();
  }
}

/** The read point of a scan or a snapshot: it sees the writes up to a sequence, without the entries that had expired at a time. */
export interface ReadPoint {
  readonly sequence: number;
  /** In milliseconds since 1970; 0 if another leader cannot open it again. */
  readonly nowMs: number;
}

/** The error for bytes that no engine of this version sends. */
export function malformed(): VarveError {
  return new VarveError(
    'VARVE_INTERNAL',
    'The engine answered with a malformed frame. Are the page and its worker of the same version?',
  );
}
