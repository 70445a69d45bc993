/**
 * Runs flushes and compactions: beside the engine if there is a compactor, otherwise in slices.
 *
 * Life of a job: it is taken from the engine and run, and its output slots are opened again. Only then is it reported to the
 * engine as finished, because the engine may read an output table in the very next call.
 *
 * Invariant: a job that fails changes nothing: its outputs are discarded and the engine stays as it was. It is tried
 * again after a pause that doubles, because the cause (most often a full disk) seldom goes away at once.
 */

import { hasCode, type VarveError } from '../errors.ts';
import { nextTurn } from '../runtime/turn.ts';
import type { Commits } from '../storage/commits.ts';
import { type ManagedDevice, SlotError } from '../storage/device.ts';
import type { JobTicket } from '../wasm/job-ticket.ts';
import type { EngineStore } from '../wasm/store.ts';
import type { JobsBeside } from './compactor-link.ts';
import type { SlotKeeper } from './slot-keeper.ts';

/** At most this many jobs at once: a flush beside a compaction. */
const JOBS_MAX = 2;
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 60_000;
/** The maximum on a full storage: deletions, here or by others, can make room at any time. */
const PAUSE_MS_MAX_FULL = 2000;
/** Entries of a slice: about 2 ms. */
const SLICE_ENTRIES = 4000;
/** Replaces the slot number of an output that was taken back: the engine has the slot open. */
const TAKEN_BACK = -1;
/** Failures of the compactor in a row before jobs are run in slices instead. */
const DEATHS_MAX = 3;

/** Runs the jobs of one store. */
export class JobRunner {
  readonly #store: EngineStore;
  readonly #device: ManagedDevice;
  readonly #commits: Commits;
  readonly #slots: SlotKeeper;
  #compactor: JobsBeside | undefined;
  readonly #running = new Set<Promise<void>>();
  #waiters: (() => void)[] = [];
  #pauseMs = 0;
  #pauseTimer: ReturnType<typeof setTimeout> | undefined;
  #deaths = 0;
  #slicing = false;
  /** Bytes that the engine needs to choose a job are being fetched. */
  #fetching = false;
  #stopped = false;
  /** The error of the last job; undefined if it did not fail. */
  failure: VarveError | undefined;
  /** How many jobs found no room so far. */
  refusals = 0;
  /** Called when a job is done: its input files can be freed. */
  onDone: () => void = () => undefined;

  /** Without a compactor, jobs are run in slices on this worker. */
  constructor(
    store: EngineStore,
    device: ManagedDevice,
    commits: Commits,
    slots: SlotKeeper,
    compactor: JobsBeside | undefined,
  ) {
    this.#store = store;
    this.#device = device;
    this.#commits = commits;
    this.#slots = slots;
    this.#compactor = compactor;
  }

  /** Starts the jobs that are due. Cheap when no job is. */
  kick(): void {
    if (this.#stopped || this.#pauseTimer !== undefined) return;
    if (this.#compactor === undefined) {
      void this.#slice();
      return;
    }
    try {
      this.#start(this.#compactor);
    } catch (error) {
      if (error instanceof SlotError && error.kind === 'pending') void this.#startLater(this.#compactor);
      else this.#failed(error as VarveError);
    }
  }

  /** Starts the jobs that are due, even if a job has just failed. */
  kickNow(): void {
    clearTimeout(this.#pauseTimer);
    this.#pauseTimer = undefined;
    this.failure = undefined;
    this.kick();
  }

  /** Runs one slice here and now; false when there is nothing to do. */
  slice(): boolean {
    return !this.#stopped && !this.#slicing && this.#store.runSlice(SLICE_ENTRIES);
  }

  /** Gets the compactor ready for the first job. */
  warm(): void {
    if (!this.#stopped) this.#compactor?.warm();
  }

  /** Whether something is being worked on, so that waiting for it makes sense. */
  isBusy(): boolean {
    return this.#running.size > 0 || this.#slicing || this.#fetching;
  }

  /** Resolves when a job succeeds or fails; at once when none is running. */
  progress(): Promise<void> {
    if (!this.isBusy()) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** Drops the running jobs, and waits until no result of them can come back. */
  async shutDown(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#pauseTimer);
    await this.#compactor?.shutDown();
    while (this.isBusy()) await Promise.race([...this.#running, nextTurn()]);
  }

  #start(compactor: JobsBeside): void {
    // On a full storage, two jobs would take the room from each other.
    const most = this.#commits.isTight ? 1 : JOBS_MAX;
    while (this.#running.size < most) {
      const ticket = this.#store.takeJob();
      if (ticket === undefined) return;
      // If even giving the job up fails, the next caller of the engine gets the error.
      const run = this.#run(compactor, ticket).catch((error) => this.#failed(error as VarveError));
      this.#running.add(run);
      void run.then(() => {
        this.#running.delete(run);
        this.#wake();
        this.kick();
      });
    }
  }

  /** Starts the jobs that are due, once the bytes that the engine needs to choose them are in memory. */
  async #startLater(compactor: JobsBeside): Promise<void> {
    if (this.#fetching) return;
    this.#fetching = true;
    try {
      await this.#commits.resident(() => {
        if (!this.#stopped) this.#start(compactor);
      });
    } catch (error) {
      this.#failed(error as VarveError);
    } finally {
      this.#fetching = false;
      this.#wake();
    }
  }

  async #run(compactor: JobsBeside, ticket: JobTicket): Promise<void> {
    const lent = new Map<number, number>();
    const retaken: Promise<void>[] = [];
    const retake = async (table: number, size: number): Promise<void> => {
      await this.#device.retake(lent.get(table) ?? -1);
      this.#store.reclaim(table, size);
      lent.set(table, TAKEN_BACK);
    };
    try {
      const result = await compactor.run(ticket, {
        read: (table, offset, length) => this.#store.readInput(table, offset, length),
        lend: async (table) => {
          const slot = await this.#slots.lend(table, ticket.bytesHint);
          lent.set(table, slot);
          return slot;
        },
        finished: (table, size) => {
          const done = retake(table, size);
          done.catch(() => undefined);
          retaken.push(done);
        },
        damaged: (table) => {
          if (!this.#stopped) this.#store.noteDamage(table);
        },
      });
      await Promise.all(retaken);
      if (this.#stopped) return;
      // From here on the outputs belong to the engine, even if `finishJob` throws.
      lent.clear();
      this.#store.finishJob(ticket.id, result);
      this.#succeeded();
      this.onDone();
    } catch (error) {
      await Promise.allSettled(retaken);
      if (this.#stopped) return;
      const isFull = (error as VarveError).code === 'VARVE_STORAGE_FULL';
      if (isFull) this.refusals++;
      await this.#giveUp(ticket, lent, isFull);
      // In slices, the engine can find room between its files when no free slot is available. Not so on a deferred device: the input of
      // the slices would have to be fetched.
      if (isFull && this.#device.lendable) await this.#slice();
      else this.#failed(error as VarveError);
    }
  }

  /** Takes back the slots of a failed job, also those of complete outputs. */
  async #giveUp(ticket: JobTicket, lent: Map<number, number>, isFull: boolean): Promise<void> {
    for (const [table, slot] of lent) {
      try {
        if (slot !== TAKEN_BACK) await this.#device.retake(slot);
      } catch {
        // The slot stays closed; the engine does not use it again before the next open.
      }
      if (!this.#stopped) this.#store.discard(table);
    }
    if (!this.#stopped) this.#store.failJob(ticket.id, isFull);
  }

  async #slice(): Promise<void> {
    if (this.#slicing) return;
    this.#slicing = true;
    try {
      let worked = false;
      while (!this.#stopped && this.#store.runSlice(SLICE_ENTRIES)) {
        worked = true;
        this.#wake();
        await nextTurn();
      }
      this.#succeeded();
      if (worked && !this.#stopped) this.onDone();
    } catch (error) {
      this.#failed(error as VarveError);
    } finally {
      this.#slicing = false;
      this.#wake();
    }
  }

  #succeeded(): void {
    this.failure = undefined;
    this.#pauseMs = 0;
    this.#deaths = 0;
  }

  #failed(error: VarveError): void {
    // A poisoned store accepts no more results.
    if (error.code === 'VARVE_POISONED') this.#stopped = true;
    if (this.#stopped) return;
    this.failure = error;
    // Not on a deferred device, whose slices would never find their input: there no job ran any more after these failures.
    const hasDied = this.#device.lendable && hasCode(error, 'VARVE_UNSUPPORTED', 'VARVE_UNAVAILABLE');
    if (hasDied && ++this.#deaths >= DEATHS_MAX) this.#compactor = undefined;
    const pauseMsMax = error.code === 'VARVE_STORAGE_FULL' ? PAUSE_MS_MAX_FULL : PAUSE_MS_MAX;
    this.#pauseMs = Math.min(pauseMsMax, Math.max(PAUSE_MS_MIN, this.#pauseMs * 2));
    this.#pauseTimer ??= setTimeout(() => {
      this.#pauseTimer = undefined;
      this.kick();
    }, this.#pauseMs);
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}
