/**
 * Runs a frame over a deferred device so that every read finds its bytes, and nothing happens twice.
 *
 * The engine answers a frame in one call. Here a read in it may fail because its bytes are not fetched yet, and the frame
 * cannot be run again as a whole once something in it was written. So:
 *
 *     only point reads      the whole frame, again and again until no bytes are missing
 *     only small writes     the whole frame: plain writes read nothing
 *     anything else         one operation after another, each until no bytes are missing; the missing bytes of later point reads
 *                           are fetched along with those of the first
 *
 * The storage may refuse a commit that the frame may have seen, before its response is sent. Then each operation has one of these outcomes:
 *
 *     kept      it is committed; or it wrote nothing, was answered, and the store has lost nothing since
 *     refused   it sets; or it deletes and had its second chance: deletes may fit where the sets beside them did not
 *     run       all others: reads see the store as it is now
 *
 * Invariant: operations take effect once and in order. An operation that failed for lack of bytes changed nothing: a
 * condition is compared before its batch is staged, and a scan that failed stays where it was. A write that was answered is done and
 * does not run again, even if bytes were missing that the engine did not need (the length of a kept segment of the log). A write that
 * was refused for lack of room changed nothing either, and runs again while room may come back (`patience.ts`). A refused write is
 * not in the store, and a write in the store is not refused, however often the storage refuses. Committed operations stay committed,
 * and each attempt completes more of them. A scan that moved forward within the frame cannot go back, so its answer is kept. It is true
 * whatever the store lost: the client knew the scan by an earlier response, so everything that the scan sees is committed.
 */

import type { VarveError } from '../errors.ts';
import { Op, Status } from '../protocol/frame.ts';
import {
  answersOf,
  asksForKey,
  type FrameOperation,
  frameOf,
  operationsOf,
  refusalOf,
  responseOf,
  statusOf,
} from '../protocol/frame-bytes.ts';
import type { DeferredDevice, PinnedBytes } from '../storage/device.ts';
import { CHANGES, DELETES, type FrameHost, Patience } from './patience.ts';

/** A frame with more bytes may fill the memtables while it runs. Then tables are read and merged inside the call. */
const WRITES_BYTES_MAX = 32 * 1024;

const POINT_READS: readonly number[] = [Op.get, Op.has, Op.getEntry, Op.getMany];
const PLAIN_WRITES: readonly number[] = [Op.set, Op.sync, ...DELETES];
/** Operations that write. */
const WRITES: readonly number[] = [...CHANGES, Op.sync];

/** A frame from its first run until its response is sent. It may need several commits, in several attempts. */
export class DeferredFrame {
  readonly #request: Uint8Array;
  readonly #operations: readonly FrameOperation[];
  /** The answers so far. After those of this attempt there may be some of the previous attempt. */
  answers: Uint8Array[] = [];
  /** For this many of the first operations, everything that they wrote and saw is committed. */
  committed = 0;
  /** Whether the store lost something that uncommitted answers may have seen. */
  isLost = false;
  /** This many of the first operations had their second chance. */
  #retried = 0;

  constructor(request: Uint8Array) {
    this.#request = request;
    this.#operations = operationsOf(request);
  }

  /** Runs it; resolves with its response. Its writes are not committed yet. */
  async run(host: FrameHost, device: DeferredDevice): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#operations.every(isPointRead)) return device.resident(() => host.respond(this.#request));
    if (this.#request.length <= WRITES_BYTES_MAX && this.#operations.every(isPlainWrite) && !device.isTight) {
      const response = host.respond(this.#request);
      // Called at once: a later write of another frame may be refused in a commit of its own.
      this.#note(device.committed(), this.#operations.length);
      return response;
    }
    return this.#runEach(host, device, () => undefined);
  }

  /** Answers it again, except those of its operations that were committed before the refusal. */
  async runAgain(host: FrameHost, device: DeferredDevice, refusal: VarveError): Promise<Uint8Array<ArrayBuffer>> {
    const given = (operation: FrameOperation, i: number): Uint8Array | undefined => {
      const { code } = operation;
      const isKept = i < this.committed || code === Op.scanNext || !(this.isLost || WRITES.includes(code));
      const before = isKept ? this.answers[i] : undefined;
      if (before !== undefined) return before;
      const mayRun = DELETES.includes(code) ? i >= this.#retried : !WRITES.includes(code);
      if (!mayRun) return refusalOf(operation, refusal);
      this.#retried = Math.max(this.#retried, i + 1);
      return undefined;
    };
    const response = await this.#runEach(host, device, given);
    this.isLost = false;
    return response;
  }

  /** Notes that the first operations are committed once `commit` resolves. */
  #note(commit: Promise<void> | undefined, operations: number): void {
    commit?.then(
      () => {
        this.committed = operations;
      },
      () => undefined,
    );
  }

  /** Runs it operation by operation, except those whose answers are given. Rejects once the device has failed. */
  async #runEach(
    host: FrameHost,
    device: DeferredDevice,
    given: (operation: FrameOperation, i: number) => Uint8Array | undefined,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const patience = new Patience(host, device);
    const held: PinnedBytes[] = [];
    let failure: unknown;
    const ensureGoing = (): void => {
      // Operations that run after a failure would be taken back.
      if (failure !== undefined) throw failure;
    };
    try {
      for (const [i, operation] of this.#operations.entries()) {
        const known = given(operation, i);
        if (known !== undefined) {
          this.answers[i] = known;
          continue;
        }
        // Other frames waited too, so check again. Operations that only read do not wait: they need no room, and a job that fails for
        // lack of room would make them read again and again.
        while (WRITES.includes(operation.code)) {
          await host.ready();
          if (!device.isPressed && !host.isStalled()) break;
        }
        const frame = frameOf(this.#request, [operation]);
        let commit: Promise<void> | undefined;
        const run = async (): Promise<Uint8Array> => {
          for (;;) {
            ensureGoing();
            const answer = attempt(host, device, frame, operation.code);
            if (answer !== undefined) {
              commit = device.committed();
              commit.catch((error: unknown) => {
                failure = error;
              });
              return answer;
            }
            if (isPointRead(operation)) {
              const reads = frameOf(this.#request, this.#operations.slice(i).filter(isPointRead));
              device.attempt(() => host.respond(reads));
            }
            await device.fetch(held);
          }
        };
        this.answers[i] = await patience.spend(operation, frame.length, run, ensureGoing);
        this.#note(commit, i + 1);
      }
    } finally {
      device.unpin(held);
    }
    return responseOf(this.answers);
  }
}

/** Runs one operation; undefined when it has to run again because its bytes were not in memory. */
function attempt(host: FrameHost, device: DeferredDevice, frame: Uint8Array, code: number): Uint8Array | undefined {
  let answer: Uint8Array | undefined;
  const attempted = device.attempt(() => {
    [answer] = answersOf(host.respond(frame));
    return answer;
  });
  if (attempted !== undefined) return attempted.value;
  const isDone = answer !== undefined && WRITES.includes(code) && statusOf(answer) !== Status.error;
  return isDone ? answer : undefined;
}

/** Whether an operation writes and reads nothing. */
function isPlainWrite(operation: FrameOperation): boolean {
  return PLAIN_WRITES.includes(operation.code) && !asksForKey(operation);
}

function isPointRead({ code }: FrameOperation): boolean {
  return POINT_READS.includes(code);
}
