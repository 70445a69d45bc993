/**
 * Flushes and compactions of an object's store, driven by its alarm: in slices, with other events of the object in between.
 *
 *     turn that leaves a job due -> event of its own: alarm at once -> slices ... -> nothing due: done
 *                                                          ^------------ still due: alarm again
 *
 * Invariant: no timer stays when nothing is due, so that the object can hibernate. An alarm that the program has set is never
 * moved: until it goes off, the engine does urgent jobs in a writer's turn. So Varve asks for the alarm and sets it in an event of its own,
 * with nothing of the program in between: a method of the program may be between these two calls when a turn ends.
 */

import type { EngineHost } from '../engine/engine-host.ts';
import { afterTurn, nextTurn } from '../runtime/turn.ts';
import type { ObjectStorage } from './platform.ts';

/** Slices of about 2 ms before other events get a turn. The clock stands still meanwhile, so the slices are counted. */
const SLICES_PER_TURN = 4;
/** The most turns of one alarm. The remaining work waits for the next alarm. */
const TURNS_PER_ALARM = 256;
/** How often Varve looks whether an alarm is still set, while a job is due: the program may have deleted or moved it. */
const LOOK_MS = 1000;

const NEVER = Number.NEGATIVE_INFINITY;
const RUNNING = Number.POSITIVE_INFINITY;

/** Runs the flushes and compactions of one object's store. */
export class Maintenance {
  readonly #host: EngineHost;
  readonly #storage: ObjectStorage;
  /** When Varve last made sure that there is an alarm. While one runs, it need not. */
  #lookedAt = NEVER;

  constructor(host: EngineHost, storage: ObjectStorage) {
    this.#host = host;
    this.#storage = storage;
  }

  /** The work of an alarm. */
  async run(): Promise<void> {
    this.#lookedAt = RUNNING;
    try {
      if (await this.#workLong()) await this.#arm();
    } finally {
      // The platform repeats a failed alarm, but not for ever.
      this.#lookedAt = NEVER;
    }
  }

  /** Does the work of one alarm; returns false when nothing is left. */
  async #workLong(): Promise<boolean> {
    for (let turn = 0; turn < TURNS_PER_ALARM; turn++) {
      if (!this.#work()) {
        this.#host.upkeep.releaseFiles();
        return false;
      }
      await nextTurn();
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
    const now = Date.now();
    if (now - this.#lookedAt < LOOK_MS || !this.#host.upkeep.isDue()) return;
    this.#lookedAt = now;
    // If it fails, the object is shutting down; the next object of this id looks again.
    afterTurn(() => void this.#arm().catch(() => undefined));
  }

  /** Sets the alarm, unless there is one: then it is the program's. */
  async #arm(): Promise<void> {
    if ((await this.#storage.getAlarm()) === null) await this.#storage.setAlarm(Date.now());
  }
}
