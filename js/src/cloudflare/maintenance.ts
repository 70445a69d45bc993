/**
 * Flushes and compactions of an object's store, driven by its alarm: in slices, with other events of the object in between.
 *
 *     turn that leaves a job due -> alarm at once -> slices ... -> nothing due: done
 *                                        ^------------ still due: alarm again
 *
 * Invariant: no timer is left behind when nothing is due, so that the object can hibernate. An alarm that the program has set is
 * never moved: until it goes off, the engine does in a writer's turn what cannot wait.
 */

import type { EngineHost } from '../worker/engine-host.ts';
import type { ObjectStorage } from './platform.ts';

/** Slices of about 2 ms between two looks at other events. The clock stands still meanwhile, so they are counted. */
const SLICES_PER_TURN = 4;
/** Turns of one alarm; what is left then waits for the next. */
const TURNS_PER_ALARM = 256;

/** Keeps the store of one object in shape. */
export class Maintenance {
  readonly #host: EngineHost;
  readonly #storage: ObjectStorage;
  /** An alarm is set, is being set, or is running. */
  #isArmed = false;

  constructor(host: EngineHost, storage: ObjectStorage) {
    this.#host = host;
    this.#storage = storage;
  }

  /** What the alarm does. */
  async run(): Promise<void> {
    this.#isArmed = true;
    try {
      this.#isArmed = await this.#workLong();
      if (this.#isArmed) await this.#storage.setAlarm(Date.now());
    } catch (error) {
      // The platform tries an alarm again that failed, but not for ever.
      this.#isArmed = false;
      throw error;
    }
  }

  /** As much as one alarm does; false when nothing is left. */
  async #workLong(): Promise<boolean> {
    for (let turn = 0; turn < TURNS_PER_ALARM; turn++) {
      if (!this.#work()) {
        this.#host.tidy();
        return false;
      }
      await nextEvent();
    }
    return true;
  }

  /** Runs a few slices; false when nothing is left. */
  #work(): boolean {
    for (let slice = 0; slice < SLICES_PER_TURN; slice++) {
      if (!this.#host.slice()) return false;
    }
    return true;
  }

  /** To be called after each turn: sees to it that the alarm goes off if there is something to do. */
  look(): void {
    if (this.#isArmed || !this.#host.isDue()) return;
    this.#isArmed = true;
    this.#arm().catch(() => {
      // The object is going down; the next incarnation looks again.
      this.#isArmed = false;
    });
  }

  async #arm(): Promise<void> {
    if ((await this.#storage.getAlarm()) === null) await this.#storage.setAlarm(Date.now());
  }
}

/** Lets other events of the object in. */
function nextEvent(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
