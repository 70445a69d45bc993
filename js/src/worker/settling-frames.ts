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
 * One that was refused for want of room changed nothing either, and runs again while room may come back (`patience.ts`).
 */

import { Op, RESPONSE_HEADER_BYTES, Status } from '../protocol/frame.ts';
import type { HeldBytes, SettlingDevice } from '../storage/device.ts';
import { type FrameOperation, frameOf, operationsOf, responseOf } from './frame-bytes.ts';
import { CHANGES, DELETES, Patience, STATUS_AT } from './patience.ts';

/** More may fill the memtables on its way, and then tables are read and merged inside the call. */
const WRITES_BYTES_MAX = 32 * 1024;

const POINT_READS: readonly number[] = [Op.get, Op.has, Op.getEntry, Op.getMany];
const PLAIN_WRITES: readonly number[] = [Op.set, Op.sync, ...DELETES];
/** Operations that write. */
export const WRITES: readonly number[] = [...CHANGES, Op.sync];

/** What running frames takes. */
export interface FrameHost {
  /** Answers a request frame with a response frame. */
  run(request: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Waits while writers should. */
  ready(): Promise<void>;
  /** Whether writers should wait for a job. */
  isStalled(): boolean;
  /**
   * Has the engine make room for a write that was refused so many times, and waits, not much longer than until a moment of
   * `performance`; resolves with whether trying again makes sense.
   */
  makeRoom(attempts: number, untilMs: number): Promise<boolean>;
}

/** How far a frame has come that is run operation by operation: they may be settled in several commits, of several attempts. */
export class FrameProgress {
  readonly request: Uint8Array;
  /** The answers so far. Behind those of this attempt there may be some of the one before. */
  answers: Uint8Array[] = [];
  /** Of so many operations, the first ones, what they wrote and saw is committed. */
  settled = 0;
  /** So many of them were given their second chance. */
  retried = 0;
  /** The store lost something that answers may have seen which are not settled. */
  isLost = false;

  constructor(request: Uint8Array) {
    this.request = request;
  }
}

/** Runs a frame; resolves with its response, whose writes are not settled yet. */
export async function runSettling(
  host: FrameHost,
  device: SettlingDevice,
  progress: FrameProgress,
): Promise<Uint8Array<ArrayBuffer>> {
  const { request } = progress;
  const operations = operationsOf(request);
  const areAll = (codes: readonly number[]): boolean => operations.every(({ code }) => codes.includes(code));
  if (areAll(POINT_READS)) return device.resident(() => host.run(request));
  if (request.length <= WRITES_BYTES_MAX && areAll(PLAIN_WRITES) && !device.isTight) {
    const response = host.run(request);
    // Asked at once: what others write in the next moment may be refused by itself.
    device.settle().then(
      () => {
        progress.settled = operations.length;
      },
      () => undefined,
    );
    return response;
  }
  return runEach(host, device, progress, operations, () => undefined);
}

/** Runs a frame operation by operation, but for those whose answers are given. Rejects once the device has failed. */
export async function runEach(
  host: FrameHost,
  device: SettlingDevice,
  progress: FrameProgress,
  operations: readonly FrameOperation[],
  given: (operation: FrameOperation, i: number) => Uint8Array | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const { request, answers } = progress;
  const patience = new Patience(host, device);
  const held: HeldBytes[] = [];
  let failure: unknown;
  const ensureGoing = (): void => {
    // What runs from here on is taken back.
    if (failure !== undefined) throw failure;
  };
  try {
    for (const [i, operation] of operations.entries()) {
      const known = given(operation, i);
      if (known !== undefined) {
        answers[i] = known;
        continue;
      }
      // Others waited, too. What only reads needs no room, and a job that fails for want of it would have it read again and again.
      while (WRITES.includes(operation.code)) {
        await host.ready();
        if (!device.isPressed && !host.isStalled()) break;
      }
      const frame = frameOf(request, [operation]);
      let settling: Promise<void> | undefined;
      const run = async (): Promise<Uint8Array> => {
        for (;;) {
          ensureGoing();
          const answer = attemptOne(host, device, frame, operation.code);
          if (answer !== undefined) {
            settling = device.settle();
            settling.catch((error: unknown) => {
              failure = error;
            });
            return answer;
          }
          if (isPointRead(operation)) {
            const reads = frameOf(request, operations.slice(i).filter(isPointRead));
            device.attempt(() => host.run(reads));
          }
          await device.fetch(held);
        }
      };
      const answer = await patience.spend(operation.code, frame, run, ensureGoing);
      answers[i] = answer.subarray(RESPONSE_HEADER_BYTES);
      settling?.then(
        () => {
          progress.settled = i + 1;
        },
        () => undefined,
      );
    }
  } finally {
    device.letGo(held);
  }
  return responseOf(answers);
}

/** Runs one operation; undefined when it has to run again because its bytes were not here. */
function attemptOne(host: FrameHost, device: SettlingDevice, frame: Uint8Array, code: number): Uint8Array | undefined {
  let answer: Uint8Array | undefined;
  const attempted = device.attempt(() => {
    answer = host.run(frame);
    return answer;
  });
  if (attempted !== undefined) return attempted.value;
  return WRITES.includes(code) && answer?.[STATUS_AT] === Status.ok ? answer : undefined;
}

function isPointRead({ code }: FrameOperation): boolean {
  return POINT_READS.includes(code);
}
