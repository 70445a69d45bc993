/**
 * One open store with everything around it: lock, device, engine, timers, compactor.
 *
 * Order of life: lock -> slots -> engine -> (serve) -> engine closed and sealed -> slots closed -> lock released.
 *
 * Invariant: what only keeps the store in shape (flush timer, seal, jobs, spare slots) happens after an answer is on
 * its way, never before it. Once a write to the storage failed, the engine refuses writes by itself; reads go on.
 *
 * Used by the engine worker, which feeds it frames, and by the synchronous store, which calls the engine directly.
 */

import { abortError, VarveError } from '../errors.ts';
import { isSettling, type ManagedDevice, type OutputGate, type SettlingDevice } from '../storage/device.ts';
import type { StoreLock } from '../storage/lock.ts';
import { originStorage } from '../storage/origin.ts';
import { delay } from '../storage/wait.ts';
import { type CheckInput, readSlot, runCheck, survey } from '../tools/check.ts';
import { loadTools } from '../tools/instance.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import type { CompactProgress, RecoveryReport, StorageReport, StoreStats } from '../types.ts';
import type { EngineStore } from '../wasm/store.ts';
import { checkInWorker } from './checker-link.ts';
import type { SpawnCompactor } from './compactor-link.ts';
import { Flusher } from './flusher.ts';
import { answersOf, refusalsOf, responseOf } from './frame-bytes.ts';
import { type EngineHostOptions, type HostParts, openParts } from './host-parts.ts';
import { JobRunner } from './job-runner.ts';
import { Quota } from './quota.ts';
import { settlingFailure } from './settling-failure.ts';
import type { FrameHost } from './settling-frames.ts';
import { SlotKeeper } from './slot-keeper.ts';

/** Writes after which a flush is likely to come: starting a worker takes tens of milliseconds. */
const WARM_WRITES = 500;
/** For so long a store that was opened and not written to does no work of its own: who looks something up and closes it need not wait for that. */
const CALM_MS = 200;
/** For so long a refused write waits for a job before it is tried again, and at least. */
const ROOM_MS = 100;
const MOMENT_MS = 20;
/** How often a refused write is tried again where no job is under way. */
const ATTEMPTS_MAX = 5;

/** An open store and what keeps it in shape. */
export class EngineHost implements FrameHost {
  readonly name: string;
  readonly store: EngineStore;
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
  readonly #device: ManagedDevice;
  /** The device, if its writes settle later. */
  readonly #settling: SettlingDevice | undefined;
  readonly #lock: StoreLock;
  readonly #flusher: Flusher;
  readonly #slots: SlotKeeper;
  readonly #jobs: JobRunner;
  readonly #quota: Quota | undefined;
  readonly #spawn: SpawnCompactor | undefined;
  readonly #planting: Promise<void>;
  readonly #watches = new Map<(cause: VarveError) => void, () => void>();
  readonly #onTurn: (() => void) | undefined;
  readonly #parts: HostParts;
  /** Going back took writes with it. */
  hasLost = false;
  /** Snapshots that the host took for itself. */
  readonly #snapshots = new Set<number>();
  /** Why another host takes this one's place. */
  #successor: VarveError | undefined;
  /** That the store was taken away while it was open. */
  #lost: VarveError | undefined;
  #warm = false;
  /** Until that resolves no job starts, unless writers would have to wait for it. */
  #held: Promise<void> | undefined;
  /** Ends the calm after opening. */
  #calm: ReturnType<typeof setTimeout> | undefined;
  #closing: Promise<void> | undefined;

  private constructor(name: string, parts: HostParts, onTurn: (() => void) | undefined) {
    const { store, device } = parts;
    this.#spawn = parts.spawn;
    this.#parts = parts;
    this.#onTurn = onTurn;
    this.name = name;
    this.store = store;
    this.storage = parts.storage;
    this.recovery = parts.recovery;
    this.#planting = parts.planting;
    this.#device = device;
    this.#settling = isSettling(device) ? device : undefined;
    this.#lock = parts.lock;
    this.#flusher = new Flusher(store, () => this.#jobs.kick());
    this.#slots = new SlotKeeper(store, device);
    this.#jobs = new JobRunner(store, device, this.#slots, parts.compactor);
    this.#quota = device.freeBytes === undefined ? undefined : new Quota(store, device);
    this.#jobs.onDone = () => {
      if (this.gate === undefined) this.#flusher.idle();
      else this.tidy();
      if (this.#settling?.isTight) this.shrink();
      this.#quota?.look();
    };
    this.onEnd(() => this.#stop());
    device.onLost = (cause) => {
      this.#lost = cause;
      for (const listener of [...this.#watches.keys()]) listener(cause);
    };
  }

  /** Opens a store; throws what `openParts` does. */
  static async open(name: string, options: EngineHostOptions): Promise<EngineHost> {
    const host = new EngineHost(name, await openParts(name, options), options.onTurn);
    host.#hold(options.hold?.());
    // Behind an output gate whoever has it says when there is work to be done.
    if (host.gate === undefined) host.#calm = setTimeout(() => host.#wake(), CALM_MS);
    // Known before much is written: where there is little room, little is kept that has to be written twice.
    host.#quota?.look();
    try {
      host.afterTurn();
      return host;
    } catch (error) {
      await host.close().catch(() => undefined);
      throw error;
    }
  }

  /** The device, if its writes settle later: what frames are answered with waits for `settled` then. */
  get settling(): SettlingDevice | undefined {
    return this.#settling;
  }

  /** Calls back at the first write that the storage refused after the engine took it for done. */
  set onFailure(callback: (error: unknown) => void) {
    if (this.#settling !== undefined) this.#settling.onFailure = (error) => callback(settlingFailure(error));
  }

  /** Whether `revived` can go on where a commit was refused for want of room: nothing acknowledged is in memory alone. */
  get canRevive(): boolean {
    return this.#settling?.canGoBack === true && this.#parts.hasLog;
  }

  /** Whether writes are logged. */
  get hasLog(): boolean {
    return this.#parts.hasLog;
  }

  /** Nothing was written since a refused commit: there may still be no room, and nothing is written but what is asked for. */
  get isQuiet(): boolean {
    return this.#settling?.isQuiet === true;
  }

  /**
   * Goes back to what the storage holds after it refused a commit for want of room, and gives the host that goes on in the place
   * of this one: the same lock and device, the engine's store opened again, snapshots and scans as far as they can go on.
   */
  async revived(refusal: VarveError): Promise<EngineHost> {
    this.#successor = refusal;
    this.#stop();
    await this.#jobs.stop();
    await this.#slots.settled();
    const acknowledged = this.store.acknowledged();
    await this.#settling?.goBack();
    const parts = await this.#parts.again();
    for (const snapshot of this.#snapshots) this.store.closeSnapshot(snapshot);
    parts.store.adopt(this.store);
    this.#closing = Promise.resolve();
    this.#unwatch();
    this.#leave();
    const successor = new EngineHost(this.name, parts, this.#onTurn);
    successor.#hold(this.#held);
    successor.hasLost = acknowledged !== parts.store.acknowledged();
    successor.#quota?.look();
    return successor;
  }

  /** Resolves when all that was done so far may be acknowledged. */
  async settle(): Promise<void> {
    try {
      await this.#settling?.settle();
    } catch (error) {
      throw settlingFailure(error);
    }
  }

  /** Waits while writers should. */
  async ready(): Promise<void> {
    while (this.#settling?.isPressed) await this.settle();
    if (this.store.isStalled()) {
      this.#jobs.kick();
      this.#slots.keep();
    }
    while (this.isStalled()) await this.progress();
  }

  /** Answers a request frame with a response frame. */
  run(request: Uint8Array): Uint8Array<ArrayBuffer> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    this.respond(request, (part) => parts.push(part));
    const [whole] = parts;
    return parts.length === 1 && whole !== undefined ? whole : responseOf(parts.flatMap(answersOf));
  }

  /** Answers a request frame with response frames, one where the answers are not long. */
  respond(request: Uint8Array, send: (response: Uint8Array<ArrayBuffer>) => void): void {
    const { exports, memory, fault, h } = this.store;
    this.store.tick();
    try {
      memory.put(request);
    } catch (error) {
      if (fault.found !== undefined || !(error instanceof VarveError)) throw error;
      send(refusalsOf(request, error));
      return;
    }
    try {
      let from = 0;
      do {
        const at = from;
        from = this.store.check(fault.guarded(() => exports.varve_frame(h, request.length, at)));
        send(memory.takeOut());
      } while (from > 0);
    } finally {
      if (fault.found === undefined) memory.trim();
    }
  }

  /** Calls back when the engine had a fault, or the store was abandoned or taken away; returns what ends that. */
  onEnd(listener: (cause: VarveError) => void): () => void {
    const end = this.store.fault.onFault(listener);
    this.#watches.set(listener, end);
    return end;
  }

  /** What holds back the answers of a turn, where there is such a thing. */
  get gate(): OutputGate | undefined {
    return this.#device.gate;
  }

  /** To be called at the end of a turn that used the store: arms timers, starts jobs, grows the pool. */
  afterTurn(): void {
    if (this.#closing !== undefined || this.isQuiet || this.store.fault.found !== undefined) return;
    if (this.gate !== undefined) {
      this.#slots.keep();
      if (this.#onTurn === undefined) this.#jobs.kick();
      else this.#onTurn();
      return;
    }
    this.#flusher.note();
    if (this.#settling?.isTight) this.shrink();
    if (!this.#isResting) {
      if (!this.#warm && this.store.writesSinceSeal() >= WARM_WRITES) {
        this.#warm = true;
        this.#jobs.warm();
      }
      this.#jobs.kick();
    }
    this.#slots.keep();
  }

  /** Whether a flush or a compaction is due, or under way in slices. */
  isDue(): boolean {
    const { frozen, levels, compacting } = this.store.stats();
    return frozen > 0 || compacting > 0 || levels.some((level) => level.score >= 1);
  }

  /** Works on a flush or a compaction for about 2 ms; false when there is none. */
  slice(): boolean {
    return this.#jobs.slice();
  }

  /** Lets go of files that nobody needs any more. What fails here, the next write meets again. */
  tidy(): void {
    try {
      this.store.release();
    } catch {
      // The engine keeps what it is refused with.
    }
  }

  /**
   * Lets go of the store without another write: whoever it belonged to is gone, and may have a successor that has it open. Its
   * device must answer nothing any more.
   */
  abandon(): void {
    if (this.#closing !== undefined) return;
    this.#closing = Promise.resolve();
    for (const listener of this.#watches.keys()) listener(closedError());
    this.#unwatch();
    this.#leave();
    void this.#lock.release();
  }

  /** Lets go of the engine's store; from the device it hears nothing any more. */
  #leave(): void {
    this.#parts.cutOff();
    try {
      this.store.close();
    } catch {
      // It could not be sealed, which is what was wanted: the engine has let go of its memory.
    }
  }

  /** Whether writers should wait; then `progress` says when to look again. */
  isStalled(): boolean {
    return this.#jobs.isBusy() && this.store.fault.found === undefined && this.store.isStalled();
  }

  /** Resolves when a flush or compaction has ended, or at once when none is running. */
  progress(): Promise<void> {
    return this.#jobs.progress();
  }

  /** Resolves when no flush or compaction is running or due. */
  async settled(): Promise<void> {
    this.#jobs.kick();
    while (this.#jobs.isBusy()) await this.#jobs.progress();
    await this.#slots.settled();
  }

  /** Lets go of what a client has open and, unless it may return, of its receipts. */
  forget(client: number, mayReturn: boolean): void {
    if (this.#closing === undefined && this.store.fault.found === undefined) this.store.forgetClient(client, mayReturn);
  }

  #hold(until: Promise<void> | undefined): void {
    this.#held = until;
    const release = (): void => {
      this.#held = undefined;
      this.afterTurn();
    };
    until?.then(release, release);
  }

  /** The calm after opening is over. */
  #wake(): void {
    this.#calm = undefined;
    this.afterTurn();
  }

  /** Whether no job is to be started now. */
  get #isResting(): boolean {
    const isCalm = this.#calm !== undefined && this.store.writesSinceSeal() === 0;
    return (this.#held !== undefined || isCalm) && !this.store.isStalled();
  }

  /** The page is hidden or goes away: nothing may stay unflushed. */
  hidden(): void {
    if (this.#closing === undefined && !this.isQuiet) this.#flusher.now();
  }

  /** Numbers about the store. */
  stats(): StoreStats {
    this.store.tick();
    return this.store.stats();
  }

  /** The same, with what the browser says of the origin. */
  async statsNow(): Promise<StoreStats> {
    const isOfBrowser = this.#device.kind === 'opfs' || this.#device.kind === 'indexeddb';
    const origin = isOfBrowser ? await originStorage() : undefined;
    this.#ensureOpen();
    return { ...this.stats(), origin };
  }

  /** Flushes everything and merges it into one run, by jobs like any other. What is written meanwhile need not be in it. */
  async compact(onProgress?: (progress: CompactProgress) => void): Promise<void> {
    let left = this.#bytesToMerge();
    try {
      this.store.askForCompaction();
      this.#jobs.kickNow();
      for (;;) {
        this.#ensureOpen();
        const { compacting, compactBytes, compactBytesMax } = this.stats();
        if (compactBytesMax > 0) {
          left = compactBytesMax - compactBytes;
          onProgress?.({ done: compactBytes, planned: compactBytesMax });
        }
        if (compacting === 0 || !this.#jobs.isBusy()) break;
        await this.#jobs.progress();
      }
      await this.#slots.settled();
      const { failure } = this.#jobs;
      if (failure !== undefined) throw failure;
    } catch (error) {
      throw (error as VarveError).code === 'VARVE_STORAGE_FULL' ? noRoomToCompact(left) : error;
    }
    this.#ensureOpen();
    this.store.release();
    this.afterTurn();
    await this.settle();
  }

  /** Bytes that a compaction of everything takes in. */
  #bytesToMerge(): number {
    const { levels, frozenBytes, memtableBytes } = this.stats();
    return levels.reduce((bytes, level) => bytes + level.bytes, frozenBytes + memtableBytes);
  }

  /** Verifies every file, in a worker where there can be one. The store goes on: it gives bytes, 1 MiB at a time. */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    const module = await loadTools(options.tools);
    if (options.signal?.aborted) throw abortError(options.signal);
    this.#ensureOpen();
    let snapshot: number | undefined;
    // One turn, or all of it again: the manifest that is copied names the tables that the snapshot keeps.
    const copy = (): CheckInput => {
      this.#unpin(snapshot);
      snapshot = this.store.openSnapshot();
      this.#snapshots.add(snapshot);
      return survey(this.#device, this.stats().walSegmentBytes || (this.recovery.state === 'torn' ? 0 : -1));
    };
    try {
      const input = await (this.#settling?.resident(copy) ?? copy());
      const read = (slot: number, at: number, length: number) => readSlot(this.#device, slot, at, length);
      if (this.#spawn !== undefined) return await checkInWorker(this.#spawn, module, input, read, options);
      const readLater = (slot: number, at: number, length: number) => {
        const call = (): Uint8Array<ArrayBuffer> => {
          // The slots are another store's by now, which has other files in them.
          this.#ensureOpen();
          return read(slot, at, length);
        };
        return this.#settling?.resident(call) ?? call();
      };
      return await runCheck(module, input, readLater, options);
    } catch (error) {
      throw this.#successor ?? (this.#closing === undefined ? error : closedError());
    } finally {
      this.#unpin(snapshot);
    }
  }

  /** Lets go of a snapshot that the host took for itself, unless it went with the store. */
  #unpin(snapshot: number | undefined): void {
    if (snapshot === undefined || !this.#snapshots.delete(snapshot)) return;
    if (this.#closing === undefined && this.store.fault.found === undefined) this.store.closeSnapshot(snapshot);
  }

  /** Closes the store; safe to call twice. Resolves when another tab could open it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Logs and seals; gives what there was no room for. All else closing meets again. */
  #seal(): VarveError | undefined {
    try {
      this.store.seal();
    } catch (error) {
      if (error instanceof VarveError && error.code === 'VARVE_STORAGE_FULL') return error;
    }
    return undefined;
  }

  /** Gives back the room of spare files at once. What fails here, the next write meets again. */
  shrink(): void {
    try {
      this.store.shrink();
    } catch {
      // The engine keeps what it is refused with.
    }
  }

  /** Has the engine make room for writes like one that was refused, when there is time. */
  wantRoom(): void {
    if (this.gate !== undefined || this.#closing !== undefined) return;
    this.shrink();
    this.store.wantRoom();
    this.#quota?.look();
    if (!this.#jobs.isBusy()) this.#jobs.kickNow();
  }

  /** See `FrameHost`. */
  async makeRoom(attempts: number, untilMs: number): Promise<boolean> {
    this.shrink();
    this.store.wantRoom();
    await this.#quota?.lookNow();
    const isMore = attempts < ATTEMPTS_MAX && (await this.#settling?.moreRoom(untilMs)) === true;
    if (!this.#jobs.isBusy() && (attempts === 0 || isMore)) this.#jobs.kickNow();
    if (!this.#jobs.isBusy() && !isMore) return false;
    // Also where a job fails at once: others have to come to their turn.
    await delay(MOMENT_MS);
    await Promise.race([this.#jobs.progress(), delay(ROOM_MS)]);
    return true;
  }

  /** A closed store leaves the next opening little to replay, and keeps no room that it does not need. Neither is a reason not to close. */
  #giveBack(): void {
    try {
      this.store.foldLog();
      this.store.shrink();
    } catch {
      // What matters of it, closing meets again.
    }
  }

  #ensureOpen(): void {
    if (this.#successor !== undefined) throw this.#successor;
    if (this.#closing !== undefined) throw closedError();
  }

  #unwatch(): void {
    for (const end of this.#watches.values()) end();
    this.#watches.clear();
  }

  /** The engine must not be called any more: nothing is left to be done but to close. */
  #stop(): void {
    clearTimeout(this.#calm);
    this.#flusher.stop();
    this.#quota?.stop();
    void this.#jobs.stop();
  }

  async #closeStore(): Promise<void> {
    await this.#slots.settled();
    const lost = this.#seal();
    this.#giveBack();
    this.store.close();
    if (lost !== undefined) throw lost;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#calm);
    this.#flusher.stop();
    this.#quota?.stop();
    const lost = this.#lost;
    try {
      await this.#jobs.stop();
      // One that has a successor, or is about to have one, must not write over it.
      if (this.isQuiet || this.#successor !== undefined) this.#leave();
      else if (this.store.fault.found === undefined) {
        await this.#closeStore();
        await this.settle();
      }
    } catch (error) {
      // A poisoned store has nothing left to write, and whoever wrote to it was told; so was everybody whose write the
      // storage has no room for.
      const nothingLost = this.canRevive ? ['VARVE_POISONED', 'VARVE_STORAGE_FULL'] : ['VARVE_POISONED'];
      if (!(error instanceof VarveError) || !nothingLost.includes(error.code)) throw this.#lost ?? error;
    } finally {
      await this.#letGo();
    }
    // Closing found it, and nobody was told yet.
    if (this.#lost !== lost) throw this.#lost;
  }

  /** Whatever became of the store, the next one who wants it gets it. */
  async #letGo(): Promise<void> {
    this.#unwatch();
    this.#parts.cutOff();
    try {
      await this.#device.closeAll();
      await this.#planting;
    } finally {
      await this.#lock.release();
    }
  }
}

function closedError(): VarveError {
  return new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
}

function noRoomToCompact(bytes: number): VarveError {
  const mib = Math.max(1, Math.ceil(bytes / (1024 * 1024)));
  return new VarveError(
    'VARVE_STORAGE_FULL',
    `The storage is full: a compaction writes tables anew before the old ones go, and lacks up to ${mib} MiB for that. Nothing is lost. Free that much, or delete data, which gives its room back by itself.`,
  );
}
