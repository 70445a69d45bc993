/**
 * Requests changes from the engine, and reads its answers.
 *
 *   value    u64 since | u32 bytes to aim at | u32 flags (1: no values) | u32 start_len | u32 end_len | start | end (empty: to the end)
 *   answer   u64 through | u64 floor | u32 count | u32 0 | change*
 *   change   u64 sequence | u8 kind (0 delete, 1 set, 2 delete range) | u8 flags (1: expires) | u16 0 | u32 key_len | u32 value_len
 *            | [f64 expires in ms since 1970] | key | value (of a deleted range: the first key behind it) | pad to 4
 *
 * Invariant: a change is handed out only when all of it lies inside the answer. A batch is never split between two answers.
 */

import { Op } from './frame.ts';
import { type FrameReader, malformed } from './frame-reader.ts';
import type { Operation } from './frame-writer.ts';

/** The request of a page. */
export interface PageRequest {
  readonly since: number;
  readonly bytesMax: number;
  readonly keysOnly: boolean;
  readonly start: Uint8Array;
  readonly end: Uint8Array;
}

/** The request of a page, without its start. */
export interface PageWanted extends Omit<PageRequest, 'since'> {
  /** Equal requests have the same name. */
  readonly name: string;
}

/** Approximate bytes of a page. */
const PAGE_BYTES = 64 * 1024;

/** The changes of a range; no bytes mean an open side. */
export function pageWanted(start: Uint8Array, end: Uint8Array, keysOnly: boolean, bytesMax = PAGE_BYTES): PageWanted {
  return { start, end, keysOnly, bytesMax, name: `${start} ${end} ${keysOnly} ${bytesMax}` };
}

/** Kinds of changes. */
export const ChangeKind = { delete: 0, set: 1, deleteRange: 2 } as const;

/** A change; its parts are views of the answer. */
export interface RawChange {
  readonly sequence: number;
  readonly kind: number;
  readonly expiresAt: Date | undefined;
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** An answer. */
export interface Page {
  /** Everything up to this sequence was read. It is lower than `since` if a crash lost changes that were seen before. */
  readonly through: number;
  /** If above `since`: the history begins after this sequence. */
  readonly floor: number;
  readonly changes: readonly RawChange[];
}

const NO_VALUES = 1;
const EXPIRES = 1;

/** Asks for a page of changes. */
export const pageOperation: Operation<undefined, PageRequest, Page> = {
  code: Op.changes,
  key: undefined,
  value: {
    write({ since, bytesMax, keysOnly, start, end }, sink) {
      sink.u32(since >>> 0);
      sink.u32(Math.floor(since / 0x1_0000_0000));
      sink.u32(bytesMax);
      sink.u32(keysOnly ? NO_VALUES : 0);
      sink.u32(start.length);
      sink.u32(end.length);
      sink.append(start);
      sink.append(end);
    },
  },
  read: readPage,
};

function readPage(answer: FrameReader): Page {
  const { bytes, start, end } = answer;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const changes: RawChange[] = [];
  let at = start + 24;
  if (at > end) throw malformed();
  for (let left = answer.u32(start + 16); left > 0; left--) {
    if (end - at < 20) throw malformed();
    const flags = bytes[at + 9] as number;
    const keyAt = at + (flags & EXPIRES ? 28 : 20);
    const valueAt = keyAt + answer.u32(at + 12);
    const valueEnd = valueAt + answer.u32(at + 16);
    if (valueEnd > end) throw malformed();
    changes.push({
      sequence: answer.u64(at),
      kind: bytes[at + 8] as number,
      expiresAt: flags & EXPIRES ? new Date(view.getFloat64(at + 20, true)) : undefined,
      key: bytes.subarray(keyAt, valueAt),
      value: bytes.subarray(valueAt, valueEnd),
    });
    at = start + ((valueEnd - start + 3) & ~3);
  }
  return { through: answer.u64(start), floor: answer.u64(start + 8), changes };
}
