/**
 * One open store with everything around it: lock, device, engine, timers, compactor.
 *
 * Order of life: lock -> slots -> engine -> (serve) -> engine closed and sealed -> slots closed -> lock released.
 *
 * Invariant: maintenance (flush timer, seal, jobs, spare slots) happens after an answer is on its way, never before it.
 * Once a write to the storage failed, the engine refuses writes by itself; reads go on.
 *
 * Used by the engine worker, which feeds it frames, and by the synchronous store, which calls the engine directly.
 */

import { VarveError } from '../errors.ts';
import { answersOf, refusalsOf, responseOf } from '../protocol/frame-bytes.ts';
import { delay } from '../runtime/wait.ts';
import type { SpawnCompactor } from '../storage/compactor-port.ts';
import { isSettling, type ManagedDevice, type OutputGate, type SettlingDevice } from '../storage/device.ts';
import type { StoreLock } from '../storage/lock.ts';
import { originStorage } from '../storage/origin.ts';
import { settlingFailure } from '../storage/settling-failure.ts';
import { type CheckInput, readSlot, runCheck, survey } from '../tools/check.ts';
import { loadTools } from '../tools/instance.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import type { CompactProgress, RecoveryReport, StorageReport, StoreStats } from '../types.ts';
import type { EngineStore } from '../wasm/store.ts';
import { checkInWorker } from './checker-link.ts';
import { Flusher } from './flusher.ts';
import { type EngineHostOptions, type HostParts, openParts } from './host-parts.ts';
import { JobRunner } from './job-runner.ts';
import type { FrameHost } from './patience.ts';
import { Quota } from './quota.ts';
import { SlotKeeper } from './slot-keeper.ts';

/** After this many writes a flush is likely to come. The worker is started ahead, because that takes tens of milliseconds. */
const WARM_WRITES = 500;
/** A store that was opened but not written to starts no job for this long. A caller that only reads and closes it need not wait for one. */
const CALM_MS = 200;
/** A refused write waits `MOMENT_MS`, and then for a job, at most `ROOM_MS` longer. Then it is tried again. */
const ROOM_MS = 100;
const MOMENT_MS = 20;
/** How often a refused write is tried again when no job is running. */
const ATTEMPTS_MAX = 5;

/** An open store and its maintenance. */
export class EngineHost implements FrameHost {
  readonly name: string;
  readonly store: EngineStore;
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
  readonly #device: ManagedDevice;
  /** The device, if its writes are committed later. */
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
  /** Whether going back to the committed state lost writes. */
  hasLost = false;
  /** Snapshots that the host took for itself. */
  readonly #snapshots = new Set<number>();
  /** The reason why another host takes this one's place. */
  #successor: VarveError | undefined;
  /** The error if the store was taken away while it was open. */
  #lost: VarveError | undefined;
  #warm = false;
  /** No job starts until this resolves, unless writers have to wait for the job. */
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
    // With an output gate, the owner of the host decides when jobs run.
    if (host.gate === undefined) host.#calm = setTimeout(() => host.#wake(), CALM_MS);
    // The engine must know the free room before much is written. With little room, it keeps little that has to be written twice.
    host.#quota?.look();
    try {
      host.afterTurn();
      return host;
    } catch (error) {
      await host.close().catch(() => undefined);
      throw error;
    }
  }

  /** The device, if its writes are committed later. Then the answers to frames wait for `settle`. */
  get settling(): SettlingDevice | undefined {
    return this.#settling;
  }

  /** Calls back at the first write that the storage refused although the engine had already accepted it. */
  set onFailure(callback: (error: unknown) => void) {
    if (this.#settling !== undefined) this.#settling.onFailure = (error) => callback(settlingFailure(error));
  }

  /** Whether `revived` can go on after a commit was refused for lack of room: no acknowledged write is in memory alone. */
  get canRevive(): boolean {
    return this.#settling?.canGoBack === true && this.#parts.hasLog;
  }

  /** Whether writes are logged. */
  get hasLog(): boolean {
    return this.#parts.hasLog;
  }

  /** Nothing was written since a refused commit. There may still be no room, so only the writes of clients are done. */
  get isQuiet(): boolean {
    return this.#settling?.isQuiet === true;
  }

  /**
   * Goes back to the committed state after the storage refused a commit for lack of room. Returns the host that takes the place of
   * this one. It has the same lock and device, and the engine's store opened again. Snapshots and scans go on as far as they can.
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

  /** Answers a request frame with response frames: with one frame unless the answers are long. */
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

  /** Calls back when the engine had a fault, or the store was abandoned or taken away; returns a function that ends the subscription. */
  onEnd(listener: (cause: VarveError) => void): () => void {
    const end = this.store.fault.onFault(listener);
    this.#watches.set(listener, end);
    return end;
  }

  /** The gate that delays the answers of a turn, if the device has one. */
  get gate(): OutputGate | undefined {
    return this.#device.gate;
  }

  /** Must be called at the end of a turn that used the store: arms timers, starts jobs, grows the pool. */
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
    const { memtable, levels, compaction } = this.store.stats();
    return memtable.frozen > 0 || compaction.running || levels.some((level) => level.score >= 1);
  }

  /** Works on a flush or a compaction for about 2 ms; false when there is none. */
  slice(): boolean {
    return this.#jobs.slice();
  }

  /** Releases files that nobody needs any more. If that fails, the next write fails in the same way. */
  tidy(): void {
    try {
      this.store.release();
    } catch {
      // The engine keeps the error.
    }
  }

  /**
   * Releases the store without another write: its owner is gone, and a successor may have the store open. The device must not
   * be used any more.
   */
  abandon(): void {
    if (this.#closing !== undefined) return;
    this.#closing = Promise.resolve();
    for (const listener of this.#watches.keys()) listener(closedError());
    this.#unwatch();
    this.#leave();
    void this.#lock.release();
  }

  /** Closes the engine's store. It is cut off from the device before. */
  #leave(): void {
    this.#parts.cutOff();
    try {
      this.store.close();
    } catch {
      // It could not be sealed, as intended. The engine has freed its memory.
    }
  }

  /** Whether writers should wait. If so, they look again when `progress` resolves. */
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

  /** Closes the snapshots and scans of a client. Unless the client may return, its receipts are dropped too. */
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

  /** Whether no job may be started now. */
  get #isResting(): boolean {
    const isCalm = this.#calm !== undefined && this.store.writesSinceSeal() === 0;
    return (this.#held !== undefined || isCalm) && !this.store.isStalled();
  }

  /** The page is hidden or goes away: everything must be flushed. */
  hidden(): void {
    if (this.#closing === undefined && !this.isQuiet) this.#flusher.now();
  }

  /** Numbers about the store. */
  stats(): StoreStats {
    this.store.tick();
    return this.store.stats();
  }

  /** The same, with the browser's numbers about the origin. */
  async statsNow(): Promise<StoreStats> {
    const isOfBrowser = this.#device.kind === 'opfs' || this.#device.kind === 'indexeddb';
    const origin = isOfBrowser ? await originStorage() : undefined;
    this.#ensureOpen();
    return { ...this.stats(), origin };
  }

  /** Flushes everything and merges it into one run, by normal jobs. Writes that come meanwhile may be left out of it. */
  async compact(onProgress?: (progress: CompactProgress) => void): Promise<void> {
    let left = this.#bytesToMerge();
    try {
      this.store.askForCompaction();
      this.#jobs.kickNow();
      for (;;) {
        this.#ensureOpen();
        const { running, doneBytes, plannedBytes } = this.stats().compaction;
        if (plannedBytes > 0) {
          left = plannedBytes - doneBytes;
          onProgress?.({ done: doneBytes, planned: plannedBytes });
        }
        if (!running || !this.#jobs.isBusy()) break;
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

  /** Input bytes of a compaction of everything. */
  #bytesToMerge(): number {
    const { levels, memtable } = this.stats();
    return levels.reduce((bytes, level) => bytes + level.bytes, memtable.frozenBytes + memtable.bytes);
  }

  /** Verifies every file, in a worker if possible. The store goes on working and serves the bytes, 1 MiB at a time. */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    const module = await loadTools(options.tools);
    options.signal?.throwIfAborted();
    this.#ensureOpen();
    let snapshot: number | undefined;
    // This must happen in one turn; otherwise all of it is done again. The copied manifest must name the tables that the snapshot keeps.
    const copy = (): CheckInput => {
      this.#unpin(snapshot);
      snapshot = this.store.openSnapshot();
      this.#snapshots.add(snapshot);
      return survey(this.#device, this.stats().log.segmentBytes || (this.recovery.state === 'torn' ? 0 : -1));
    };
    try {
      const input = await (this.#settling?.resident(copy) ?? copy());
      const read = (slot: number, at: number, length: number) => readSlot(this.#device, slot, at, length);
      if (this.#spawn !== undefined) return await checkInWorker(this.#spawn, module, input, read, options);
      const readLater = (slot: number, at: number, length: number) => {
        const call = (): Uint8Array<ArrayBuffer> => {
          // After a close or a revival, the slots may contain the files of another store.
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

  /** Closes a snapshot that the host took for itself, unless it was closed with the store. */
  #unpin(snapshot: number | undefined): void {
    if (snapshot === undefined || !this.#snapshots.delete(snapshot)) return;
    if (this.#closing === undefined && this.store.fault.found === undefined) this.store.closeSnapshot(snapshot);
  }

  /** Closes the store; safe to call twice. Resolves when another tab could open it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Logs and seals. Returns the error if there was no room; any other error comes again when the store is closed. */
  #seal(): VarveError | undefined {
    try {
      this.store.seal();
    } catch (error) {
      if (error instanceof VarveError && error.code === 'VARVE_STORAGE_FULL') return error;
    }
    return undefined;
  }

  /** Frees the room of spare files at once. If that fails, the next write fails in the same way. */
  shrink(): void {
    try {
      this.store.shrink();
    } catch {
      // The engine keeps the error.
    }
  }

  /** Asks the engine to make room, when there is time, for writes like one that was refused. */
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
    // Wait also if a job fails at once: other tasks need their turn.
    await delay(MOMENT_MS);
    await Promise.race([this.#jobs.progress(), delay(ROOM_MS)]);
    return true;
  }

  /** Leaves little log for the next opening to replay, and frees room that is not needed. The store is closed even if this fails. */
  #giveBack(): void {
    try {
      this.store.foldLog();
      this.store.shrink();
    } catch {
      // An error that matters comes again when the store is closed.
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

  /** Stops timers and jobs: the engine must not be called any more. The store can only be closed now. */
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
      // A host that has a successor, or will have one soon, must not overwrite the successor's data.
      if (this.isQuiet || this.#successor !== undefined) this.#leave();
      else if (this.store.fault.found === undefined) {
        await this.#closeStore();
        await this.settle();
      }
    } catch (error) {
      // A poisoned store has nothing left to write, and its writers already got the error. Writers also got the error when
      // the storage had no room for their writes.
      const nothingLost = this.canRevive ? ['VARVE_POISONED', 'VARVE_STORAGE_FULL'] : ['VARVE_POISONED'];
      if (!(error instanceof VarveError) || !nothingLost.includes(error.code)) throw this.#lost ?? error;
    } finally {
      await this.#letGo();
    }
    // The loss was found while closing, and is not reported yet.
    if (this.#lost !== lost) throw this.#lost;
  }

  /** Releases files and lock, whatever happened to the store, so that the next caller can open it. */
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
