/**
 * Runs frames over a settling device so that every read finds its bytes, and nothing happens twice.
 *
 * The engine answers a frame in one call. Here a read in it may fail because its bytes are not fetched yet, and the frame
 * cannot be run again as a whole once something in it was written. So:
 *
 *     only point reads      the whole frame, again and again until no bytes are missing
 *     only small writes     the whole frame: plain writes read nothing
 *     anything else         one operation after another, each until no bytes are missing; the missing bytes of later point reads
 *                           are fetched along with those of the first
 *
 * Invariant: operations take effect once and in order. An operation that failed for lack of bytes changed nothing: a
 * condition is compared before its batch is staged, and a scan that failed stays where it was. A write that was answered is done,
 * even if bytes were missing that the engine did not need (the length of a kept segment of the log): it does not run again.
 * A write that was refused for lack of room changed nothing either, and runs again while room may come back (`patience.ts`).
 */

import { Op, RESPONSE_HEADER_BYTES, Status } from '../protocol/frame.ts';
import { type FrameOperation, frameOf, operationsOf, responseOf } from '../protocol/frame-bytes.ts';
import type { HeldBytes, SettlingDevice } from '../storage/device.ts';
import { CHANGES, DELETES, type FrameHost, Patience, STATUS_AT } from './patience.ts';

/** A frame with more bytes may fill the memtables while it runs. Then tables are read and merged inside the call. */
const WRITES_BYTES_MAX = 32 * 1024;

const POINT_READS: readonly number[] = [Op.get, Op.has, Op.getEntry, Op.getMany];
const PLAIN_WRITES: readonly number[] = [Op.set, Op.sync, ...DELETES];
/** Operations that write. */
export const WRITES: readonly number[] = [...CHANGES, Op.sync];

/** The progress of a frame that runs operation by operation. It may need several commits, in several attempts. */
export class FrameProgress {
  readonly request: Uint8Array;
  /** The answers so far. After those of this attempt there may be some of the previous attempt. */
  answers: Uint8Array[] = [];
  /** For this many of the first operations, everything that they wrote and saw is committed. */
  settled = 0;
  /** This many of the first operations had their second chance. */
  retried = 0;
  /** Whether the store lost something that uncommitted answers may have seen. */
  isLost = false;

  constructor(request: Uint8Array) {
    this.request = request;
  }
}

/** Runs a frame; resolves with its response. Its writes are not committed yet. */
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
    // Called at once: a later write of another frame may be refused in a commit of its own.
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

/** Runs a frame operation by operation, except those whose answers are given. Rejects once the device has failed. */
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
    // Operations that run after a failure would be taken back.
    if (failure !== undefined) throw failure;
  };
  try {
    for (const [i, operation] of operations.entries()) {
      const known = given(operation, i);
      if (known !== undefined) {
        answers[i] = known;
        continue;
      }
      // Other frames waited too, so check again. Operations that only read do not wait: they need no room, and a job that fails for
      // lack of room would make them read again and again.
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

/** Runs one operation; undefined when it has to run again because its bytes were not in memory. */
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
