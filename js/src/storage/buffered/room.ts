/**
 * What a buffered device knows of the room that its storage has: nothing, until the storage refuses a commit.
 *
 *     roomy   commits go through; the reserve is whole
 *     tight   a commit was refused, and needed room from the reserve: slots must not grow until the reserve is whole again
 *
 * A storage may take a while to give back what was overwritten or deleted. So a commit that is refused when even
 * the reserve is used up is sent again for a while, and writers may wait for `more`.
 *
 * Invariant: sets leave the room that flushes and merges need on a full storage, and these the room that deletes need. Where the reserve is not whole, it is completed beside the
 * commits: after each, and whenever somebody wants to grow. A session that writes little begins no reserve. A store that gave of it is tight
 * when it is opened again, or its first sets would take the room that its first flush needs.
 */

import { SlotError } from '../device.ts';
import { delay } from '../wait.ts';
import type { ChunkReserve, Need } from './chunk-store.ts';

const PAUSE_MS_MIN = 60;
const PAUSE_MS_MAX = 250;
/** So long after opening there may come more room. */
const START_MS = 5000;
/** Between two attempts to complete the reserve. */
const COMPLETE_MS = 200;
/** So long after a commit of a tight store the next ones may let go of something. */
const NEXT_MS = 1000;
/** Bytes that a session commits before it looks after the reserve. */
const LITTLE_BYTES = 256 * 1024;
/** Bytes of a small commit. */
const SMALL_BYTES = 64 * 1024;

/** The room of one store. */
export class Room {
  readonly #reserve: ChunkReserve | undefined;
  #isTight = false;
  #isWhole: boolean;
  #bytes = 0;
  #completing: Promise<void> | undefined;
  #notBefore = 0;
  /** Until then what commits let go of may come back. */
  #until = 0;
  /** Until then the reserve may become whole. */
  #wholeUntil = 0;
  #isClosed = false;

  constructor(reserve: ChunkReserve | undefined) {
    this.#reserve = reserve;
    // A browser that was ended tidies up when it starts, and has less room meanwhile.
    if (reserve !== undefined && reserve.patienceMs > 0) this.#until = performance.now() + START_MS;
    this.#isWhole = reserve === undefined;
  }

  /** Begins, once the store was taken over. */
  begin(): void {
    this.#isTight = this.#reserve?.wasGiven() === true;
  }

  get isTight(): boolean {
    return this.#isTight;
  }

  /** Whether what is deleted can be used again at once. */
  get givesBackAtOnce(): boolean {
    return this.#reserve?.patienceMs === 0;
  }

  /** Whether slots may become longer now. */
  mayGrow(): boolean {
    if (this.#isTight) void this.#keepWhole();
    return !this.#isTight;
  }

  /** Sends a commit of so many bytes; one that is refused again and again, with room from the reserve. With `only` it is for what that names. */
  async commit(bytes: number, send: () => Promise<void>, only?: Need | 'nothing'): Promise<void> {
    for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
      try {
        await send();
        break;
      } catch (error) {
        if (this.#reserve === undefined || !isFull(error) || only === 'nothing') throw error;
        const need = only ?? (bytes <= SMALL_BYTES ? 'small' : this.#isTight ? 'full' : 'any');
        if (await this.#give(this.#reserve, need)) continue;
        if (!this.#mayComeBack) throw error;
        await delay(pauseMs);
      }
    }
    const patienceMs = this.#reserve?.patienceMs ?? 0;
    this.#until = performance.now() + patienceMs;
    this.#wholeUntil = performance.now() + Math.max(patienceMs, NEXT_MS);
    this.#bytes += bytes;
    if (this.#isTight || (!this.#isWhole && this.#bytes > LITTLE_BYTES)) void this.#keepWhole();
  }

  /** Waits for room that may come back, until a moment of `performance` at most; resolves with whether slots may grow again. */
  async more(untilMs: number): Promise<boolean> {
    for (let pauseMs = this.#notBefore - performance.now(); this.#isTight; pauseMs = PAUSE_MS_MAX) {
      await delay(Math.max(0, pauseMs));
      await this.#keepWhole();
      if (this.#isClosed || performance.now() >= Math.min(untilMs, Math.max(this.#until, this.#wholeUntil))) break;
    }
    return !this.#isTight;
  }

  /** Waits for what is under way; nothing is begun any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#completing;
  }

  get #mayComeBack(): boolean {
    return !this.#isClosed && performance.now() < this.#until;
  }

  async #give(reserve: ChunkReserve, need: Need): Promise<boolean> {
    await this.#completing;
    this.#isTight = true;
    this.#isWhole = false;
    return reserve.give(need);
  }

  /** Tries to complete the reserve beside all else, unless that was tried a moment ago; resolves when no attempt is under way. */
  async #keepWhole(): Promise<void> {
    if (!this.#isClosed && performance.now() >= this.#notBefore) {
      this.#notBefore = performance.now() + COMPLETE_MS;
      this.#completing ??= this.#tryToComplete().finally(() => {
        this.#completing = undefined;
      });
    }
    await this.#completing;
  }

  async #tryToComplete(): Promise<void> {
    try {
      this.#isWhole = (await this.#reserve?.complete()) === true;
      this.#isTight = !this.#isWhole;
    } catch {
      // A storage that fails otherwise fails the next commit, too, and that is told.
    }
  }
}

function isFull(error: unknown): boolean {
  return error instanceof SlotError && error.kind === 'full';
}
