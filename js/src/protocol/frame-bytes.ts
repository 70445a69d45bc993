/**
 * Splits frames into operations and answers, and joins them again.
 *
 * Invariant: operations and answers keep the bytes that they have in their frames, padding included.
 */

import { joined } from '../codec/joined.ts';
import { codeNumber, type VarveError, type VarveErrorCode } from '../errors.ts';
import {
  ANSWER_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FRAME_MAGIC,
  OP_HEADER_BYTES,
  Op,
  RESPONSE_HEADER_BYTES,
  Status,
} from './frame.ts';

/** One operation of a frame. */
export interface FrameOperation {
  readonly code: number;
  readonly bytes: Uint8Array;
}

/** The operations of a request frame. */
export function operationsOf(request: Uint8Array): FrameOperation[] {
  const view = new DataView(request.buffer, request.byteOffset, request.length);
  const operations: FrameOperation[] = [];
  for (let at = FRAME_HEADER_BYTES; at + OP_HEADER_BYTES <= request.length; ) {
    const length = OP_HEADER_BYTES + view.getUint32(at + 8, true) + view.getUint32(at + 12, true);
    const next = at + ((length + 3) & ~3);
    operations.push({ code: request[at + 4] ?? 0, bytes: request.subarray(at, next) });
    at = next;
  }
  return operations;
}

/** The client's number for an operation. */
export function requestOf({ bytes }: FrameOperation): number {
  return u32(bytes, 0);
}

/** Whether an operation is a delete that asks whether its key was there. */
export function asksForKey({ code, bytes }: FrameOperation): boolean {
  return code === Op.delete && u32(bytes, 12) > 0;
}

/** A request frame of operations, with the header (and so the client) of `request`. */
export function frameOf(request: Uint8Array, operations: readonly FrameOperation[]): Uint8Array<ArrayBuffer> {
  const parts = operations.map(({ bytes }) => bytes);
  return counted(request.subarray(0, FRAME_HEADER_BYTES), parts);
}

/** A response that refuses all operations of a frame. */
export function refusalsOf(request: Uint8Array, error: VarveError): Uint8Array<ArrayBuffer> {
  return responseOf(operationsOf(request).map((operation) => refusalOf(operation, error)));
}

/** The answer to an operation that is refused. */
export function refusalOf({ bytes }: FrameOperation, error: VarveError): Uint8Array {
  const text = new TextEncoder().encode(error.message);
  const answer = new Uint8Array(ANSWER_HEADER_BYTES + ((4 + text.length + 3) & ~3));
  const view = new DataView(answer.buffer);
  answer.set(bytes.subarray(0, 4));
  answer[4] = Status.error;
  view.setUint32(8, 4 + text.length, true);
  view.setUint32(ANSWER_HEADER_BYTES, codeNumber(error.code), true);
  answer.set(text, ANSWER_HEADER_BYTES + 4);
  return answer;
}

/** The status of an answer. */
export function statusOf(answer: Uint8Array): number | undefined {
  return answer[4];
}

/** Whether an answer refuses its operation with this error. */
export function isRefusedWith(answer: Uint8Array, code: VarveErrorCode): boolean {
  return statusOf(answer) === Status.error && u32(answer, ANSWER_HEADER_BYTES) === codeNumber(code);
}

/** The answers in a response. */
export function answersOf(response: Uint8Array): Uint8Array[] {
  const answers: Uint8Array[] = [];
  for (let at = RESPONSE_HEADER_BYTES; at < response.length; ) {
    const next = (at + ANSWER_HEADER_BYTES + u32(response, at + 8) + 3) & ~3;
    answers.push(response.subarray(at, next));
    at = next;
  }
  return answers;
}

/** A response frame of answers. */
export function responseOf(answers: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(RESPONSE_HEADER_BYTES);
  new DataView(header.buffer).setUint32(0, FRAME_MAGIC, true);
  return counted(header, answers);
}

/** A header with its count set, followed by the parts. */
function counted(header: Uint8Array, parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const frame = joined([header, ...parts]);
  new DataView(frame.buffer).setUint32(4, parts.length, true);
  return frame;
}

function u32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
}
