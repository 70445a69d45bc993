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
 * One that was refused for want of room changed nothing either, and runs again while room may come back.
 */

import { codeNumber, type VarveError } from '../errors.ts';
import {
  ANSWER_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FRAME_MAGIC,
  OP_HEADER_BYTES,
  Op,
  RESPONSE_HEADER_BYTES,
  Status,
} from '../protocol/frame.ts';
import { type HeldBytes, type SettlingDevice, SlotError } from '../storage/device.ts';
import { delay } from '../storage/wait.ts';
import { settlingFailure } from './settling-failure.ts';

/** More may fill the memtables on its way, and then tables are read and merged inside the call. */
const WRITES_BYTES_MAX = 32 * 1024;

const POINT_READS: readonly number[] = [Op.get, Op.has, Op.getEntry, Op.getMany];
/** Operations that only delete. */
export const DELETES: readonly number[] = [Op.delete, Op.deleteRange];
const PLAIN_WRITES: readonly number[] = [Op.set, Op.sync, ...DELETES];
const WRITES: readonly number[] = [...PLAIN_WRITES, Op.batch];

/** Where the status of the first answer of a response is, and the number of an error. */
const STATUS_AT = RESPONSE_HEADER_BYTES + 4;
const ERROR_AT = RESPONSE_HEADER_BYTES + ANSWER_HEADER_BYTES;
/** The number of `VARVE_STORAGE_FULL`. */
export const STORAGE_FULL = 2;
/** So long a set is tried again that was refused for want of room, while jobs make some. */
const SET_MS_MAX = 5000;
/** So long a delete is, whatever else goes on: the engine has room for it as soon as the flush before it is through. */
const DELETE_MS_MAX = 2000;
const DELETE_PAUSE_MS = 100;
/** A batch of so many bytes may be all deletes. */
const SHORT_BYTES = 4096;

/** What running frames takes. */
export interface FrameHost {
  /** Answers a request frame with a response frame. */
  run(request: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Waits while writers should. */
  ready(): Promise<void>;
  /** Whether writers should wait for a job. */
  isStalled(): boolean;
  /** Has the engine make room for a write that was refused so many times, and waits; resolves with whether trying again makes sense. */
  makeRoom(attempts: number): Promise<boolean>;
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
  if (request.length <= WRITES_BYTES_MAX && areAll(PLAIN_WRITES) && !device.isTight) return host.run(request);
  const { answers } = progress;
  const held: HeldBytes[] = [];
  try {
    for (let i = 0; i < operations.length; i++) {
      // Others waited, too.
      do await host.ready();
      while (device.isPressed || host.isStalled());
      const run = async (): Promise<Uint8Array> => {
        for (;;) {
          const answer = attemptOne(host, device, request, operations.slice(i, i + 1));
          if (answer !== undefined) return answer;
          if (isPointRead(operations[i])) {
            const reads = frameOf(request, operations.slice(i).filter(isPointRead));
            device.attempt(() => host.run(reads));
          }
          await device.fetch(held);
        }
      };
      const operation = frameOf(request, operations.slice(i, i + 1));
      const answer = await makingRoom(host, device, operations[i]?.code ?? 0, operation, run);
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

/** Runs an operation, a write that is refused for want of room again and again while there may come more; a set not at all before. */
async function makingRoom(
  host: FrameHost,
  device: SettlingDevice,
  code: number,
  frame: Uint8Array,
  run: () => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const isDelete = DELETES.includes(code);
  const isRefused = (): boolean => device.isTight && isSet(code, frame.length);
  let answer = isRefused() ? refusalsOf(frame, noRoom()) : await run();
  const until = performance.now() + (isDelete ? DELETE_MS_MAX : SET_MS_MAX);
  for (let attempts = 0; isFull(answer) && performance.now() < until; attempts++) {
    if (!(await host.makeRoom(attempts))) {
      if (!isDelete) break;
      await delay(DELETE_PAUSE_MS);
    }
    if (!isRefused()) answer = await run();
  }
  return answer;
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

/** Whether an operation sets something: on a full storage it must leave alone what is there for deletes. A short batch may be all deletes. */
function isSet(code: number, bytes: number): boolean {
  return code === Op.set || (code === Op.batch && bytes > SHORT_BYTES);
}

/** Whether a write was refused for want of room, which changed nothing. */
function isFull(answer: Uint8Array): boolean {
  if (answer[STATUS_AT] !== Status.error) return false;
  return new DataView(answer.buffer, answer.byteOffset).getUint32(ERROR_AT, true) === STORAGE_FULL;
}

function noRoom(): VarveError {
  return settlingFailure(new SlotError('full', 'What is set aside was used.')) as VarveError;
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

/** Refuses all that a frame asks for. */
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
