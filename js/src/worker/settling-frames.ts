/**
 * Frames over a settling device: run so that every read finds its bytes, and nothing happens twice.
 *
 * The engine answers a frame in one call. Here a read in it may fail because its bytes have yet to be fetched, and the frame
 * cannot be run again as a whole once something in it was written. So:
 *
 *     only point reads      the whole frame, again and again until nothing was missing
 *     only small writes     the whole frame: plain writes read nothing
 *     anything else         one operation after another, each until nothing was missing; what the point reads that follow
 *                           will be missing is fetched along with the first
 *
 * Invariant: operations take effect once and in order. An operation that failed for want of bytes changed nothing: a
 * condition is compared before its batch is staged, a scan that failed stays where it was. A write that was answered is done,
 * though something was missing that the engine could do without (how long a kept segment of the log is): it does not run again.
 */

import {
  FRAME_HEADER_BYTES,
  FRAME_MAGIC,
  OP_HEADER_BYTES,
  Op,
  RESPONSE_HEADER_BYTES,
  Status,
} from '../protocol/frame.ts';
import type { HeldBytes, SettlingDevice } from '../storage/device.ts';

/** More may fill the memtables on its way, and then tables are read and merged inside the call. */
const WRITES_BYTES_MAX = 32 * 1024;

const POINT_READS: readonly number[] = [Op.get, Op.has, Op.getEntry, Op.getMany];
const PLAIN_WRITES: readonly number[] = [Op.set, Op.delete, Op.deleteRange, Op.sync];
const WRITES: readonly number[] = [...PLAIN_WRITES, Op.batch];

/** Where the status of the first answer of a response is. */
const STATUS_AT = RESPONSE_HEADER_BYTES + 4;

/** What running frames takes. */
export interface FrameHost {
  /** Answers a request frame with a response frame. */
  run(request: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Waits while writers should. */
  ready(): Promise<void>;
}

/** One operation of a frame. */
export interface FrameOperation {
  readonly code: number;
  readonly bytes: Uint8Array;
}

/** How far a frame has come that is run operation by operation: they may be settled in several commits. */
export interface FrameProgress {
  /** Answers so far. */
  readonly answers: Uint8Array[];
  /** Of so many operations, the first ones, what they wrote and saw is committed. */
  settled: number;
}

/** Runs a frame; resolves with its response, whose writes are not settled yet. */
export async function runSettling(
  host: FrameHost,
  device: SettlingDevice,
  request: Uint8Array,
  progress: FrameProgress,
): Promise<Uint8Array<ArrayBuffer>> {
  const operations = operationsOf(request);
  const areAll = (codes: readonly number[]): boolean => operations.every(({ code }) => codes.includes(code));
  if (areAll(POINT_READS)) return device.resident(() => host.run(request));
  if (request.length <= WRITES_BYTES_MAX && areAll(PLAIN_WRITES)) return host.run(request);
  const { answers } = progress;
  const held: HeldBytes[] = [];
  try {
    for (let i = 0; i < operations.length; i++) {
      await host.ready();
      const attempt = (): Uint8Array | undefined => attemptOne(host, device, request, operations.slice(i, i + 1));
      let answer = attempt();
      while (answer === undefined) {
        if (isPointRead(operations[i])) {
          const reads = frameOf(request, operations.slice(i).filter(isPointRead));
          device.attempt(() => host.run(reads));
        }
        await device.fetch(held);
        answer = attempt();
      }
      answers.push(answer.subarray(RESPONSE_HEADER_BYTES));
      const settled = (): void => {
        progress.settled = i + 1;
      };
      device.settle().then(settled, () => undefined);
    }
  } finally {
    device.letGo(held);
  }
  return responseOf(answers);
}

/** Runs one operation; undefined when it has to run again because its bytes were not here. */
function attemptOne(
  host: FrameHost,
  device: SettlingDevice,
  request: Uint8Array,
  operation: readonly FrameOperation[],
): Uint8Array | undefined {
  const frame = frameOf(request, operation);
  let answer: Uint8Array | undefined;
  const attempted = device.attempt(() => {
    answer = host.run(frame);
    return answer;
  });
  if (attempted !== undefined) return attempted.value;
  const isDone = operation.every(({ code }) => WRITES.includes(code)) && answer?.[STATUS_AT] === Status.ok;
  return isDone ? answer : undefined;
}

function isPointRead(operation: FrameOperation | undefined): boolean {
  return operation !== undefined && POINT_READS.includes(operation.code);
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

/** A request frame of operations, for the client of another one. */
export function frameOf(request: Uint8Array, operations: readonly FrameOperation[]): Uint8Array<ArrayBuffer> {
  const parts = operations.map(({ bytes }) => bytes);
  return joined(request.subarray(0, FRAME_HEADER_BYTES), parts);
}

/** A response frame of answers. */
export function responseOf(answers: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(RESPONSE_HEADER_BYTES);
  new DataView(header.buffer).setUint32(0, FRAME_MAGIC, true);
  return joined(header, answers);
}

/** A header, whose count is set, and what it counts. */
function joined(header: Uint8Array, parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, header.length));
  frame.set(header);
  new DataView(frame.buffer).setUint32(4, parts.length, true);
  let at = header.length;
  for (const part of parts) {
    frame.set(part, at);
    at += part.length;
  }
  return frame;
}
