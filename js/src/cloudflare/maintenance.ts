/**
 * Flushes and compactions of an object's store, driven by its alarm: in slices, with other events of the object in between.
 *
 *     turn that leaves a job due -> alarm at once -> slices ... -> nothing due: done
 *                                        ^------------ still due: alarm again
 *
 * Invariant: no timer stays when nothing is due, so that the object can hibernate. An alarm that the program has set is never
 * moved: until it goes off, the engine does urgent jobs in a writer's turn.
 */

import type { EngineHost } from '../engine/engine-host.ts';
import type { ObjectStorage } from './platform.ts';

/** Slices of about 2 ms before other events get a turn. The clock stands still meanwhile, so the slices are counted. */
const SLICES_PER_TURN = 4;
/** The most turns of one alarm. The remaining work waits for the next alarm. */
const TURNS_PER_ALARM = 256;

/** Runs the flushes and compactions of one object's store. */
export class Maintenance {
  readonly #host: EngineHost;
  readonly #storage: ObjectStorage;
  /** An alarm is set, is being set, or is running. */
  #isArmed = false;

  constructor(host: EngineHost, storage: ObjectStorage) {
    this.#host = host;
    this.#storage = storage;
  }

  /** The work of an alarm. */
  async run(): Promise<void> {
    this.#isArmed = true;
    try {
      this.#isArmed = await this.#workLong();
      if (this.#isArmed) await this.#arm();
    } catch (error) {
      // The platform repeats a failed alarm, but not for ever.
      this.#isArmed = false;
      throw error;
    }
  }

  /** Does the work of one alarm; returns false when nothing is left. */
  async #workLong(): Promise<boolean> {
    for (let turn = 0; turn < TURNS_PER_ALARM; turn++) {
      if (!this.#work()) {
        this.#host.upkeep.releaseFiles();
        return false;
      }
      await nextEvent();
    }
    return true;
  }

  /** Runs a few slices; returns false when nothing is left. */
  #work(): boolean {
    for (let slice = 0; slice < SLICES_PER_TURN; slice++) {
      if (!this.#host.upkeep.slice()) return false;
    }
    return true;
  }

  /** To be called after each turn: makes sure that the alarm goes off if there is something to do. */
  look(): void {
    if (this.#isArmed || !this.#host.upkeep.isDue()) return;
    this.#isArmed = true;
    this.#arm().catch(() => {
      // The object is shutting down; the next object of this id checks again.
      this.#isArmed = false;
    });
  }

  /** Sets the alarm, unless there is one: then it is the program's. */
  async #arm(): Promise<void> {
    if ((await this.#storage.getAlarm()) === null) await this.#storage.setAlarm(Date.now());
  }
}

/** Lets other events of the object run. */
function nextEvent(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
