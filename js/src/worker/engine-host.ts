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
import { readSlot, runCheck, survey } from '../tools/check.ts';
import { loadTools } from '../tools/instance.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import type { CompactProgress, RecoveryReport, StorageReport, StoreStats } from '../types.ts';
import { engineFault, faultOfEngine, onEngineFault } from '../wasm/fault.ts';
import { unregisterDevice } from '../wasm/host.ts';
import type { EngineStore } from '../wasm/store.ts';
import { checkInWorker } from './checker-link.ts';
import type { SpawnCompactor } from './compactor-link.ts';
import { Flusher } from './flusher.ts';
import { type EngineHostOptions, type HostParts, openParts } from './host-parts.ts';
import { JobRunner } from './job-runner.ts';
import { Quota } from './quota.ts';
import { settlingFailure } from './settling-failure.ts';
import { type FrameHost, type FrameProgress, runSettling } from './settling-frames.ts';
import { SlotKeeper } from './slot-keeper.ts';
import { nextTurn } from './turn.ts';

/** Each time a closing store finds no spare slot, some are added. */
const CLOSE_ATTEMPTS_MAX = 16;
/** Writes after which a flush is likely to come: starting a worker takes tens of milliseconds. */
const WARM_WRITES = 500;
/** For so long a store that was opened and not written to does no work of its own: who looks something up and closes it need not wait for that. */
const CALM_MS = 200;

/** An open store and what keeps it in shape. */
export class EngineHost implements FrameHost {
  readonly name: string;
  readonly store: EngineStore;
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
  readonly #device: ManagedDevice;
  /** The device, if its writes settle later. */
  readonly #settling: SettlingDevice | undefined;
  /** Its number, while the engine may use it. */
  #deviceId: number | undefined;
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
  /** Snapshots that the host took for itself. */
  readonly #snapshots = new Set<number>();
  /** Why another host takes this one's place. */
  #successor: VarveError | undefined;
  #warm = false;
  /** No job starts yet, unless writers would have to wait for it. */
  #isHeld = false;
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
    this.#deviceId = parts.deviceId;
    this.#lock = parts.lock;
    this.#flusher = new Flusher(store);
    this.#slots = new SlotKeeper(store, device);
    this.#jobs = new JobRunner(store, device, this.#slots, parts.compactor);
    this.#quota = device.freeBytes === undefined ? undefined : new Quota(store, device);
    this.#jobs.onDone = () => {
      if (this.gate === undefined) this.#flusher.idle();
      else this.tidy();
      this.#quota?.look();
    };
    this.onEnd(() => this.#stop());
  }

  /** Opens a store; throws what `openParts` does. */
  static async open(name: string, options: EngineHostOptions): Promise<EngineHost> {
    const host = new EngineHost(name, await openParts(name, options), options.onTurn);
    if (options.hold !== undefined) host.#hold(options.hold());
    // Behind an output gate whoever has it says when there is work to be done.
    if (host.gate === undefined) host.#calm = setTimeout(() => host.#wake(), CALM_MS);
    else host.#quota?.look();
    try {
      host.afterTurn();
      return host;
    } catch (error) {
      await host.close().catch(() => undefined);
      throw error;
    }
  }

  /** Whether frames go through `answer`, and what they are answered with waits for `settled`. */
  get isSettling(): boolean {
    return this.#settling !== undefined;
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
    await this.#settling?.goBack();
    const parts = await this.#parts.again();
    for (const snapshot of this.#snapshots) this.store.closeSnapshot(snapshot);
    parts.store.adopt(this.store);
    this.#closing = Promise.resolve();
    this.#unwatch();
    this.#leave();
    const successor = new EngineHost(this.name, parts, this.#onTurn);
    successor.#quota?.look();
    return successor;
  }

  /** Answers a request frame of a store that settles later; nobody must see the answer before `settle` resolved. */
  async answer(
    request: Uint8Array,
    progress: FrameProgress = { answers: [], settled: 0 },
  ): Promise<Uint8Array<ArrayBuffer>> {
    await this.ready();
    const device = this.#settling;
    return device === undefined ? this.run(request) : runSettling(this, device, request, progress);
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
    const { exports, memory, h } = this.store;
    this.store.tick();
    memory.put(request);
    let status: number;
    try {
      status = exports.varve_frame(h, request.length);
    } catch (error) {
      throw engineFault(error);
    }
    this.store.check(status);
    return memory.takeOut();
  }

  /** Calls back when the engine had a fault or the store was abandoned; returns what ends that. */
  onEnd(listener: (cause: VarveError) => void): () => void {
    const end = onEngineFault(listener);
    this.#watches.set(listener, end);
    return end;
  }

  /** What holds back the answers of a turn, where there is such a thing. */
  get gate(): OutputGate | undefined {
    return this.#device.gate;
  }

  /** To be called at the end of a turn that used the store: arms timers, starts jobs, grows the pool. */
  afterTurn(): void {
    if (this.#closing !== undefined || this.isQuiet || faultOfEngine() !== undefined) return;
    if (this.gate !== undefined) {
      this.#slots.keep();
      if (this.#onTurn === undefined) this.#jobs.kick();
      else this.#onTurn();
      return;
    }
    this.#flusher.note();
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
    this.#cutOff();
    try {
      this.store.close();
    } catch {
      // It could not be sealed, which is what was wanted: the engine has let go of its memory.
    }
  }

  /** From the device the engine's store hears nothing any more. */
  #cutOff(): void {
    if (this.#deviceId !== undefined) unregisterDevice(this.#deviceId);
    this.#deviceId = undefined;
  }

  /** Whether writers should wait; then `progress` says when to look again. */
  isStalled(): boolean {
    return this.#jobs.isBusy() && faultOfEngine() === undefined && this.store.isStalled();
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

  /** Resolves in a later turn, once spare slots are open again and what stalls writers is done. */
  async room(): Promise<void> {
    this.afterTurn();
    await this.#slots.settled();
    while (this.isStalled()) await this.#jobs.progress();
    // Also when there was nothing to wait for: slices of work need a turn, and who asks again and again waits for those.
    await nextTurn();
  }

  /** Lets go of what a client has open and, unless it may return, of its receipts. */
  forget(client: number, mayReturn: boolean): void {
    if (this.#closing === undefined && faultOfEngine() === undefined) this.store.forgetClient(client, mayReturn);
  }

  #hold(until: Promise<void>): void {
    this.#isHeld = true;
    const release = (): void => {
      this.#isHeld = false;
      this.afterTurn();
    };
    until.then(release, release);
  }

  /** The calm after opening is over. */
  #wake(): void {
    this.#calm = undefined;
    this.#quota?.look();
    this.afterTurn();
  }

  /** Whether no job is to be started now. */
  get #isResting(): boolean {
    const isCalm = this.#calm !== undefined && this.store.writesSinceSeal() === 0;
    return (this.#isHeld || isCalm) && !this.store.isStalled();
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
    this.store.askForCompaction();
    this.#jobs.kick();
    for (;;) {
      if (this.#successor !== undefined) throw this.#successor;
      this.#ensureOpen();
      const { compacting, compactBytes, compactBytesMax } = this.stats();
      if (compactBytesMax > 0) onProgress?.({ done: compactBytes, planned: compactBytesMax });
      if (compacting === 0 || !this.#jobs.isBusy()) break;
      await this.#jobs.progress();
    }
    await this.#slots.settled();
    const { failure } = this.#jobs;
    if (failure !== undefined) throw failure;
    this.#ensureOpen();
    this.store.release();
    this.afterTurn();
    await this.settle();
  }

  /** Verifies every file, in a worker where there can be one. The store goes on: it gives bytes, 1 MiB at a time. */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    const module = await loadTools(options.tools);
    if (options.signal?.aborted) throw abortError(options.signal);
    this.#ensureOpen();
    const snapshot = this.store.openSnapshot();
    this.#snapshots.add(snapshot);
    try {
      const copy = () =>
        survey(this.#device, this.stats().walSegmentBytes || (this.recovery.state === 'torn' ? 0 : -1));
      const input = await (this.#settling?.resident(copy) ?? copy());
      const read = (slot: number, at: number, length: number) => readSlot(this.#device, slot, at, length);
      if (this.#spawn !== undefined) return await checkInWorker(this.#spawn, module, input, read, options);
      const readLater = (slot: number, at: number, length: number) =>
        this.#settling?.resident(() => read(slot, at, length)) ?? read(slot, at, length);
      return await runCheck(module, input, readLater, options);
    } catch (error) {
      throw this.#successor ?? (this.#closing === undefined ? error : closedError());
    } finally {
      this.#snapshots.delete(snapshot);
      if (this.#closing === undefined && faultOfEngine() === undefined) this.store.closeSnapshot(snapshot);
    }
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

  /** What is staged may need a segment of its own; without a log, what is in memory needs tables. */
  async #closeStore(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#slots.keep();
      await this.#slots.settled();
      const lost = this.#seal();
      this.#giveBack();
      try {
        this.store.close();
        if (lost !== undefined) throw lost;
        return;
      } catch (error) {
        if (attempt === CLOSE_ATTEMPTS_MAX || (error as { code?: unknown }).code !== 'VARVE_BUSY') throw error;
      }
    }
  }

  async #close(): Promise<void> {
    clearTimeout(this.#calm);
    this.#flusher.stop();
    this.#quota?.stop();
    try {
      await this.#jobs.stop();
      // One that has a successor, or is about to have one, must not write over it.
      if (this.isQuiet || this.#successor !== undefined) this.#leave();
      else if (faultOfEngine() === undefined) {
        await this.#closeStore();
        await this.settle();
      }
    } catch (error) {
      // A poisoned store has nothing left to write, and whoever wrote to it was told; so was everybody whose write the
      // storage has no room for.
      const nothingLost = this.canRevive ? ['VARVE_POISONED', 'VARVE_STORAGE_FULL'] : ['VARVE_POISONED'];
      if (!(error instanceof VarveError) || !nothingLost.includes(error.code)) throw error;
    } finally {
      await this.#letGo();
    }
  }

  /** Whatever became of the store, the next one who wants it gets it. */
  async #letGo(): Promise<void> {
    this.#unwatch();
    this.#cutOff();
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
