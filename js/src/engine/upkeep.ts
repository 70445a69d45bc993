/**
 * The maintenance of one open store: timers, flushes and compactions, spare slots, room.
 *
 * Invariant: maintenance happens after a response is on its way, never before it. After `shutDown` nothing of it calls the engine.
 */

import { SALVAGE, VarveError } from '../errors.ts';
import { delay } from '../runtime/wait.ts';
import type { Commits } from '../storage/commits.ts';
import type { ManagedDevice } from '../storage/device.ts';
import type { Progress, StoreStats } from '../types.ts';
import type { EngineStore } from '../wasm/store.ts';
import type { JobsBeside } from './compactor-link.ts';
import { Flusher } from './flusher.ts';
import { JobRunner } from './job-runner.ts';
import { Quota } from './quota.ts';
import { SlotKeeper } from './slot-keeper.ts';

/** After this many writes a flush is likely to come. The worker is started ahead, because that takes tens of milliseconds. */
const WARM_WRITES = 500;
/** A store that was opened but not written to starts no job for this long. A caller that only reads and closes it need not wait for one. */
const CALM_MS = 200;
/** After opening, the store looks for room and spare slots this much later. */
const LOOK_MS = 10;
/** A refused write waits `MOMENT_MS`, and then for a job, at most `ROOM_MS` longer. Then it is tried again. */
const ROOM_MS = 100;
const MOMENT_MS = 20;
const DAMAGED = `The store is damaged: a table cannot be read, so it was not merged. ${SALVAGE}`;
/** How often a refused write is tried again when no job is running. */
const ATTEMPTS_MAX = 5;

/** The parts of an open store that its maintenance uses. */
interface UpkeepParts {
  readonly store: EngineStore;
  readonly device: ManagedDevice;
  readonly commits: Commits;
  /** Runs jobs beside the engine; without it they run in slices. */
  readonly compactor: JobsBeside | undefined;
  /** Called at the end of a turn instead of starting jobs. */
  readonly onTurn: (() => void) | undefined;
}

/** Keeps one open store in order. */
export class Upkeep {
  readonly #store: EngineStore;
  readonly #device: ManagedDevice;
  readonly #commits: Commits;
  readonly #onTurn: (() => void) | undefined;
  readonly #flusher: Flusher;
  readonly #slots: SlotKeeper;
  readonly #jobs: JobRunner;
  readonly #quota: Quota | undefined;
  #isWarm = false;
  #isShutDown = false;
  /** No job starts until this resolves, unless writers have to wait for the job. */
  #held: Promise<void> | undefined;
  #looking: ReturnType<typeof setTimeout> | undefined;
  /** Ends the calm after opening. */
  #calm: ReturnType<typeof setTimeout> | undefined;

  constructor({ store, device, commits, compactor, onTurn }: UpkeepParts) {
    this.#store = store;
    this.#device = device;
    this.#commits = commits;
    this.#onTurn = onTurn;
    this.#flusher = new Flusher(store, () => this.#jobs.kick());
    this.#slots = new SlotKeeper(store, device);
    this.#jobs = new JobRunner(store, device, commits, this.#slots, compactor);
    this.#quota = device.freeBytes === undefined ? undefined : new Quota(store, device);
    this.#jobs.onDone = () => {
      if (device.gate === undefined) this.#flusher.idle();
      else this.releaseFiles();
      if (commits.isTight) this.#shrink();
      this.#quota?.look();
    };
  }

  /** The store was opened, and is in use from now on. */
  begin(held: Promise<void> | undefined): void {
    this.hold(held);
    // With an output gate, the owner of the host decides when jobs run.
    if (this.#device.gate === undefined) this.#calm = setTimeout(() => this.#wake(), CALM_MS);
    // The engine must know the free room before much is written. With little room, it keeps little that has to be written twice. But
    // the first answers come first.
    if (this.#device.gate !== undefined) this.#look();
    else this.#looking = setTimeout(() => this.#look(), LOOK_MS);
  }

  /** The store goes on in the place of the store of another upkeep. */
  follow(former: Upkeep): void {
    this.hold(former.#held);
    this.#quota?.look();
  }

  /** Starts no job until the promise resolves or rejects. */
  hold(until: Promise<void> | undefined): void {
    this.#held = until;
    const end = (): void => {
      this.#held = undefined;
      this.afterTurn();
    };
    until?.then(end, end);
  }

  /** Must be called at the end of a turn that used the store: arms timers, starts jobs, grows the pool. */
  afterTurn(): void {
    if (this.#isShutDown || this.#commits.isQuiet || this.#store.fault.found !== undefined) return;
    if (this.#device.gate !== undefined) {
      this.#slots.keep();
      if (this.#onTurn === undefined) this.#jobs.kick();
      else this.#onTurn();
      return;
    }
    this.#flusher.note();
    if (this.#commits.isTight) this.#shrink();
    if (!this.#isResting) {
      if (!this.#isWarm && this.#store.writesSinceSeal() >= WARM_WRITES) {
        this.#isWarm = true;
        this.#jobs.warm();
      }
      this.#jobs.kick();
    }
    this.#slots.keep();
  }

  /** The page is hidden or goes away: everything must be flushed. */
  hidden(): void {
    if (!this.#isShutDown && !this.#commits.isQuiet) this.#flusher.now();
  }

  /** Whether a flush or a compaction is due, or under way in slices. */
  isDue(): boolean {
    const { memtable, levels, compaction } = this.#store.stats();
    return memtable.frozen > 0 || compaction.running || levels.some((level) => level.score >= 1);
  }

  /** Works on a flush or a compaction for about 2 ms; false when there is none. */
  slice(): boolean {
    return this.#jobs.slice();
  }

  /** Releases files that nobody needs any more. If that fails, the next write fails in the same way. */
  releaseFiles(): void {
    try {
      this.#store.release();
    } catch {
      // The engine keeps the error.
    }
  }

  /** Whether writers should wait. If so, they look again when `progress` resolves. */
  isStalled(): boolean {
    return this.#jobs.isBusy() && this.#store.fault.found === undefined && this.#store.isStalled();
  }

  /** Resolves when a flush or compaction has ended, or at once when none is running. */
  progress(): Promise<void> {
    return this.#jobs.progress();
  }

  /** Starts the job that writers wait for, if any, and waits while they should. */
  async ready(): Promise<void> {
    if (this.#store.isStalled()) {
      this.#jobs.kick();
      this.#slots.keep();
    }
    while (this.isStalled()) await this.progress();
  }

  /** Resolves when no flush or compaction is running or due. */
  async idle(): Promise<void> {
    this.#jobs.kick();
    while (this.#jobs.isBusy()) await this.#jobs.progress();
    await this.#slots.idle();
  }

  /**
   * Flushes everything and merges it into one run, by normal jobs. Writes that come meanwhile may be left out of it. `ensureOpen` throws
   * once the store is closed.
   */
  async compact(ensureOpen: () => void, onProgress?: (progress: Progress) => void): Promise<void> {
    const left = { bytes: this.#bytesToMerge() };
    try {
      const refusals = this.#jobs.refusals;
      await this.#mergeAll(ensureOpen, left, onProgress);
      if (this.#jobs.refusals !== refusals && !this.#isMerged()) {
        // A refused job ends the merge, and what was done for room meanwhile may be enough for another one.
        await this.#mergeAll(ensureOpen, left, onProgress);
        if (!this.#isMerged()) throw noRoomToCompact(left.bytes);
      }
    } catch (error) {
      throw (error as VarveError).code === 'VARVE_STORAGE_FULL' ? noRoomToCompact(left.bytes) : error;
    }
    ensureOpen();
    this.#store.release();
    this.afterTurn();
  }

  /** Merges everything, if no job is refused. `left` becomes the bytes that are still to be merged. */
  async #mergeAll(
    ensureOpen: () => void,
    left: { bytes: number },
    onProgress?: (progress: Progress) => void,
  ): Promise<void> {
    this.#store.askForCompaction();
    this.#jobs.kickNow();
    for (;;) {
      ensureOpen();
      const { running, doneBytes, plannedBytes } = this.stats().compaction;
      if (plannedBytes > 0) {
        left.bytes = plannedBytes - doneBytes;
        onProgress?.({ done: doneBytes, total: plannedBytes });
      }
      if (!running || !this.#jobs.isBusy()) break;
      await this.#jobs.progress();
    }
    await this.#slots.idle();
    const { failure } = this.#jobs;
    if (failure !== undefined) throw failure;
    if (this.#store.hasDamage()) throw new VarveError('VARVE_CORRUPT', DAMAGED);
  }

  /** Whether all tables are in one level below level 0. */
  #isMerged(): boolean {
    const [fresh, ...levels] = this.stats().levels;
    return fresh?.tables === 0 && levels.filter((level) => level.tables > 0).length <= 1;
  }

  /** Asks the engine to make room, when there is time, for writes like one that was refused. */
  wantRoom(): void {
    if (this.#device.gate !== undefined || this.#isShutDown) return;
    this.#shrink();
    this.#store.wantRoom();
    this.#quota?.look();
    if (!this.#jobs.isBusy()) this.#jobs.kickNow();
  }

  /**
   * Asks the engine to make room for a write that was refused after `attempts` retries, and waits. It waits not much longer
   * than until `untilMs`, a time of `performance.now()`. Resolves with whether trying again makes sense.
   */
  async makeRoom(attempts: number, untilMs: number): Promise<boolean> {
    this.#shrink();
    this.#store.wantRoom();
    await this.#quota?.lookNow();
    const isMore = attempts < ATTEMPTS_MAX && (await this.#commits.moreRoom(untilMs));
    if (!this.#jobs.isBusy() && (attempts === 0 || isMore)) this.#jobs.kickNow();
    if (!this.#jobs.isBusy() && !isMore) return false;
    // Wait also if a job fails at once: other tasks need their turn.
    await delay(MOMENT_MS);
    await Promise.race([this.#jobs.progress(), delay(ROOM_MS)]);
    return true;
  }

  /** Ends timers and jobs. Resolves when no job can write any more, and no slot is being created. */
  async shutDown(): Promise<void> {
    this.#isShutDown = true;
    clearTimeout(this.#calm);
    clearTimeout(this.#looking);
    this.#flusher.shutDown();
    this.#quota?.shutDown();
    await this.#jobs.shutDown();
    await this.#slots.idle();
  }

  /** Numbers about the store. */
  stats(): StoreStats {
    this.#store.tick();
    return this.#store.stats();
  }

  #look(): void {
    this.#quota?.look();
    this.afterTurn();
  }

  /** The calm after opening is over. */
  #wake(): void {
    this.#calm = undefined;
    this.afterTurn();
  }

  /** Whether no job may be started now. */
  get #isResting(): boolean {
    const isCalm = this.#calm !== undefined && this.#store.writesSinceSeal() === 0;
    return (this.#held !== undefined || isCalm) && !this.#store.isStalled();
  }

  /** Frees the room of spare files at once. If that fails, the next write fails in the same way. */
  #shrink(): void {
    try {
      this.#store.shrink();
    } catch {
      // The engine keeps the error.
    }
  }

  /** Input bytes of a compaction of everything. */
  #bytesToMerge(): number {
    const { levels, memtable } = this.stats();
    return levels.reduce((bytes, level) => bytes + level.bytes, memtable.frozenBytes + memtable.bytes);
  }
}

function noRoomToCompact(bytes: number): VarveError {
  const mib = Math.max(1, Math.ceil(bytes / (1024 * 1024)));
  return new VarveError(
    'VARVE_STORAGE_FULL',
    `The storage is full: a compaction writes new tables before it deletes the old ones, and lacks up to ${mib} MiB for that. Nothing is lost. Free that much, or delete data: the store then frees its room by itself.`,
  );
}
