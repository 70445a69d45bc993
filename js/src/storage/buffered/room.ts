/**
 * The knowledge of a buffered device about the room in its storage. It knows nothing until the storage refuses a commit.
 *
 *     roomy   commits go through; the reserve is whole
 *     tight   a commit was refused, and needed room from the reserve: slots must not grow until the reserve is whole again
 *
 * A storage may take a while to free the room of overwritten or deleted data. So a commit that is refused when even the reserve is
 * used up is sent again for a while, and writers may wait for `more`.
 *
 * Invariant: on a full storage, sets leave the room that flushes and merges need, and flushes and merges leave the room that deletes
 * need. A reserve that is not whole is completed beside the commits: after each commit, and whenever a slot wants to grow. A session
 * that writes little begins no reserve. A store that used some of its reserve is tight when it is opened again. Otherwise its first sets
 * would take the room that its first flush needs.
 */

import { delay } from '../../runtime/wait.ts';
import { SlotError } from '../device.ts';
import type { ChunkReserve, Need } from './chunk-store.ts';

const PAUSE_MS_MIN = 60;
const PAUSE_MS_MAX = 250;
/** For this long after opening, more room may become free. */
const START_MS = 5000;
/** The time between two attempts to complete the reserve. */
const COMPLETE_MS = 200;
/** For this long after a commit of a tight store, the next commits may free some room. */
const NEXT_MS = 1000;
/** Bytes that a session commits before it begins to complete the reserve. */
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
  /** Until this time, room that commits freed may still become available. */
  #until = 0;
  /** Until this time, the reserve may still become whole. */
  #wholeUntil = 0;
  #isClosed = false;

  constructor(reserve: ChunkReserve | undefined) {
    this.#reserve = reserve;
    // A browser that was killed cleans up when it starts. Until it has finished, it has less room.
    if (reserve !== undefined && reserve.patienceMs > 0) this.#until = performance.now() + START_MS;
    this.#isWhole = reserve === undefined;
  }

  /** Called once the store was taken over. */
  begin(): void {
    this.#isTight = this.#reserve?.wasGiven() === true;
  }

  get isTight(): boolean {
    return this.#isTight;
  }

  /** Whether the room of deleted data can be used again at once. */
  get releasesAtOnce(): boolean {
    return this.#reserve?.patienceMs === 0;
  }

  /** Whether slots may become longer now. */
  mayGrow(): boolean {
    if (this.#isTight) void this.#keepWhole();
    return !this.#isTight;
  }

  /**
   * Sends a commit of `bytes` bytes. A commit that is refused is sent again: with room from the reserve, or, while more room may still
   * become free, after a pause. `only` decides what it may use of the reserve; without it, the commit's size and the state decide.
   */
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

  /** Waits for room that may become free, at most until a time of `performance.now()`; resolves with whether slots may grow again. */
  async more(untilMs: number): Promise<boolean> {
    for (let pauseMs = this.#notBefore - performance.now(); this.#isTight; pauseMs = PAUSE_MS_MAX) {
      await delay(Math.max(0, pauseMs));
      await this.#keepWhole();
      if (this.#isClosed || performance.now() >= Math.min(untilMs, Math.max(this.#until, this.#wholeUntil))) break;
    }
    return !this.#isTight;
  }

  /** Waits for the attempt under way, and starts no new one. */
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

  /** Tries to complete the reserve beside other work, unless it has just tried that; resolves when no attempt is under way. */
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
      // A storage that fails for another reason also fails the next commit, and that commit reports it.
    }
  }
}

function isFull(error: unknown): boolean {
  return error instanceof SlotError && error.kind === 'full';
}
