/**
 * How long the writes of one frame are tried again after they were refused for lack of room, while jobs and the storage make room.
 *
 *     sets      share one time limit, from the first refusal on; after it, a set is refused at once if it is as long as a refused one
 *     deletes   are always tried again, as long as one succeeds now and then: the engine has room for them as soon as the flush
 *               before them is done
 *
 * Invariant: a frame that finds no room at all ends within the time of one set and one delete, however many it has. All other frames,
 * and closing, wait for it. A set does not run at all while the storage keeps its last room for deletes.
 */

import type { VarveError } from '../errors.ts';
import { Op } from '../protocol/frame.ts';
import { type FrameOperation, isRefusedWith, refusalOf } from '../protocol/frame-bytes.ts';
import { delay } from '../runtime/wait.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import { type DeferredDevice, SlotError } from '../storage/device.ts';

const SET_MS_MAX = 5000;
const DELETE_MS_MAX = 2000;
const DELETE_PAUSE_MS = 100;
/** A batch of up to this many bytes may contain only deletes. */
const SHORT_BYTES = 4096;

/** Operations that only delete. */
export const DELETES: readonly number[] = [Op.delete, Op.deleteRange];
/** Operations that set or delete. */
export const CHANGES: readonly number[] = [Op.set, Op.batch, ...DELETES];

/** The host's methods that running frames needs. */
export interface FrameHost {
  /** Answers a request frame with a response frame. */
  respond(request: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Waits while writers should. */
  ready(): Promise<void>;
  /** Whether writers should wait for a job. */
  isStalled(): boolean;
  /**
   * Asks the engine to make room for a write that was refused after `attempts` retries, and waits. It waits not much longer
   * than until `untilMs`, a time of `performance.now()`. Resolves with whether trying again makes sense.
   */
  makeRoom(attempts: number, untilMs: number): Promise<boolean>;
}

/** The time limits for the writes of one frame. */
export class Patience {
  readonly #host: FrameHost;
  readonly #device: DeferredDevice;
  /** The times until which sets and deletes wait; 0 if not set yet. */
  #setsUntil = 0;
  #deletesUntil = 0;
  /** A set of this many bytes was refused, and no write has succeeded since. */
  #bytesMax = Number.POSITIVE_INFINITY;

  constructor(host: FrameHost, device: DeferredDevice) {
    this.#host = host;
    this.#device = device;
  }

  /**
   * Runs an operation, which takes `bytes` in a frame of its own. A write that is refused for lack of room runs again and again, while more
   * room may come. `ensureGoing` throws once later operations could not be committed.
   */
  async spend(
    operation: FrameOperation,
    bytes: number,
    run: () => Promise<Uint8Array>,
    ensureGoing: () => void,
  ): Promise<Uint8Array> {
    const { code } = operation;
    if (!CHANGES.includes(code)) return run();
    const refusal = (): Uint8Array => refusalOf(operation, noRoom());
    if (!DELETES.includes(code) && bytes >= this.#bytesMax) return refusal();
    const attempt = async (): Promise<Uint8Array> => (this.#device.isTight && isSet(code, bytes) ? refusal() : run());
    let answer = await attempt();
    for (let attempts = 0; isRefusedWith(answer, 'VARVE_STORAGE_FULL'); attempts++) {
      ensureGoing();
      if (!(await this.#waits(DELETES.includes(code), attempts))) {
        if (!DELETES.includes(code)) this.#bytesMax = bytes;
        return answer;
      }
      answer = await attempt();
    }
    this.#deletesUntil = 0;
    this.#bytesMax = Number.POSITIVE_INFINITY;
    return answer;
  }

  /** Waits for room; resolves with whether trying again makes sense. */
  async #waits(isDelete: boolean, attempts: number): Promise<boolean> {
    const now = performance.now();
    if (isDelete) this.#deletesUntil ||= now + DELETE_MS_MAX;
    else this.#setsUntil ||= now + SET_MS_MAX;
    const until = isDelete ? this.#deletesUntil : this.#setsUntil;
    if (now >= until) return false;
    const isMore = await this.#host.makeRoom(attempts, until);
    if (isMore || !isDelete) return isMore;
    await delay(DELETE_PAUSE_MS);
    return true;
  }
}

/** Whether an operation sets something. On a full storage, it must not use the room for deletes. A short batch may be all deletes. */
function isSet(code: number, bytes: number): boolean {
  return code === Op.set || (code === Op.batch && bytes > SHORT_BYTES);
}

function noRoom(): VarveError {
  return commitFailure(new SlotError('full', 'The reserve was used.')) as VarveError;
}
