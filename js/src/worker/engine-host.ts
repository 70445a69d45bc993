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
import type { StorageAdapter } from '../storage/adapter.ts';
import { hasCanary, plantCanary } from '../storage/canary.ts';
import { isSettling, type ManagedDevice, type OutputGate, type SettlingDevice } from '../storage/device.ts';
import { acquireLock, type StoreLock } from '../storage/lock.ts';
import { type OpenedDevice, type OpenIndexedDb, openDevice } from '../storage/open-device.ts';
import { originStorage } from '../storage/origin.ts';
import { readSlot, runCheck, survey } from '../tools/check.ts';
import { loadTools } from '../tools/instance.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import type { CompactProgress, EngineOptions, RecoveryReport, StorageReport, StoreStats } from '../types.ts';
import type { Engine, StoreSettings } from '../wasm/exports.ts';
import { engineFault, faultOfEngine, onEngineFault } from '../wasm/fault.ts';
import { registerDevice, unregisterDevice } from '../wasm/host.ts';
import { loadEngine, type WasmSource } from '../wasm/load.ts';
import { EngineStore } from '../wasm/store.ts';
import { checkInWorker } from './checker-link.ts';
import { CompactorLink, type JobsBeside, type SpawnCompactor } from './compactor-link.ts';
import { Flusher } from './flusher.ts';
import { JobRunner } from './job-runner.ts';
import { Quota } from './quota.ts';
import { settlingFailure } from './settling-failure.ts';
import { type FrameHost, runSettling } from './settling-frames.ts';
import { SettlingJobs } from './settling-jobs.ts';
import { SlotKeeper } from './slot-keeper.ts';

const WAIT_MS_DEFAULT = 5000;
/** A dead worker's handles are closed a moment after its lock is free. */
const HANDLES_WAIT_MS = 5000;
/** Each time a closing store finds no spare slot, some are added. */
const CLOSE_ATTEMPTS_MAX = 16;
/** Writes after which a flush is likely to come: starting a worker takes tens of milliseconds. */
const WARM_WRITES = 500;
const MEMORY_BYTES_DEFAULT = 32 * 1024 * 1024;
const MEMORY_BYTES_MIN = 1024 * 1024;

/** How a host is opened. */
export interface EngineHostOptions extends EngineOptions {
  wasm?: WasmSource | undefined;
  signal?: AbortSignal | undefined;
  /** Makes the compactor worker; without it jobs run in slices. */
  compactor?: SpawnCompactor | undefined;
  /** Run jobs in slices, also where the device brings a compactor of its own. */
  slices?: boolean | undefined;
  /** Who keeps the store, instead of the storages of browsers. */
  adapter?: StorageAdapter | undefined;
  /** Opens stores in IndexedDB; without it there are none here. */
  indexedDb?: OpenIndexedDb | undefined;
  /** Called at the end of a turn by a host behind an output gate, instead of starting jobs: see `isDue` and `slice`. */
  onTurn?: (() => void) | undefined;
  /** A device to use instead of opening one, for tests. */
  device?: ManagedDevice | undefined;
}

/** An open store and what keeps it in shape. */
export class EngineHost implements FrameHost {
  readonly name: string;
  readonly store: EngineStore;
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
  readonly #device: ManagedDevice;
  /** The device, if its writes settle later. */
  readonly #settling: SettlingDevice | undefined;
  readonly #deviceId: number;
  readonly #lock: StoreLock;
  readonly #flusher: Flusher;
  readonly #slots: SlotKeeper;
  readonly #jobs: JobRunner;
  readonly #quota: Quota | undefined;
  readonly #spawn: SpawnCompactor | undefined;
  readonly #planting: Promise<void>;
  readonly #watches = new Map<(cause: VarveError) => void, () => void>();
  readonly #onTurn: (() => void) | undefined;
  #warm = false;
  #closing: Promise<void> | undefined;

  private constructor(
    name: string,
    store: EngineStore,
    parts: { device: ManagedDevice; deviceId: number; lock: StoreLock; storage: StorageReport; canary: Canary },
    compactor: JobsBeside | undefined,
    { spawn, onTurn }: { spawn: SpawnCompactor | undefined; onTurn: (() => void) | undefined },
  ) {
    this.#spawn = spawn;
    this.#onTurn = onTurn;
    this.name = name;
    this.store = store;
    this.storage = parts.storage;
    this.recovery = parts.canary.recovery;
    this.#planting = parts.canary.planting;
    this.#device = parts.device;
    this.#settling = isSettling(parts.device) ? parts.device : undefined;
    this.#deviceId = parts.deviceId;
    this.#lock = parts.lock;
    this.#flusher = new Flusher(store);
    this.#slots = new SlotKeeper(store, parts.device);
    this.#jobs = new JobRunner(store, parts.device, this.#slots, compactor);
    this.#quota = parts.device.freeBytes === undefined ? undefined : new Quota(store, parts.device);
    this.#jobs.onDone = () => {
      if (this.gate === undefined) this.#flusher.idle();
      else this.tidy();
      this.#quota?.look();
    };
    this.#quota?.look();
    this.onEnd(() => this.#stop());
  }

  /**
   * Opens a store.
   * @throws `VARVE_LOCKED`, `VARVE_CORRUPT`, `VARVE_VERSION`, `VARVE_STORAGE_FULL`, `VARVE_UNSUPPORTED`, `VARVE_ABORTED`.
   */
  static async open(name: string, options: EngineHostOptions): Promise<EngineHost> {
    const settings = settingsOf(options);
    const wait = options.wait ?? WAIT_MS_DEFAULT;
    const { signal } = options;
    const loading = loadEngine(options.wasm);
    loading.catch(() => undefined);
    const lock = locksItself(options) ? { release: async () => undefined } : await acquireLock(name, { wait, signal });
    let device: ManagedDevice | undefined;
    let deviceId: number | undefined;
    try {
      const opened = await deviceOf(name, options);
      device = opened.device;
      const engine = await loading;
      if (signal?.aborted) throw abortError(signal);
      deviceId = registerDevice(device);
      const store = await openOn(device, engine, deviceId, { ...settings, files_max: device.slotsMax });
      const spawn = compactorOf(device, options);
      const place = device.compactor?.place ?? name;
      let compactor: JobsBeside | undefined;
      if (isSettling(device)) compactor = new SettlingJobs(engine.control, device);
      else if (spawn !== undefined) compactor = new CompactorLink(spawn, engine.module, place);
      const canary = await askCanary(name, opened.report.kind, store.recovery);
      const parts = { device, deviceId, lock, storage: opened.report, canary };
      const host = new EngineHost(name, store, parts, compactor, { spawn, onTurn: options.onTurn });
      host.afterTurn();
      return host;
    } catch (error) {
      if (deviceId !== undefined) unregisterDevice(deviceId);
      await device?.closeAll();
      await lock.release();
      throw signal?.aborted ? abortError(signal) : settlingFailure(error);
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

  /** Answers a request frame of a store that settles later; nobody must see the answer before `settle` resolved. */
  async answer(request: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    await this.ready();
    const device = this.#settling;
    return device === undefined ? this.run(request) : runSettling(this, device, request);
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
    if (this.#closing !== undefined || faultOfEngine() !== undefined) return;
    if (this.gate !== undefined) {
      this.#slots.keep();
      if (this.#onTurn === undefined) this.#jobs.kick();
      else this.#onTurn();
      return;
    }
    this.#flusher.note();
    if (!this.#warm && this.store.writesSinceSeal() >= WARM_WRITES) {
      this.#warm = true;
      this.#jobs.warm();
    }
    this.#jobs.kick();
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
    try {
      this.store.close();
    } catch {
      // It could not be sealed, which is what was wanted: the engine has let go of its memory.
    }
    unregisterDevice(this.#deviceId);
    void this.#lock.release();
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
  }

  /** The page is hidden or goes away: nothing may stay unflushed. */
  hidden(): void {
    if (this.#closing === undefined) this.#flusher.now();
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
      throw this.#closing === undefined ? error : closedError();
    } finally {
      if (this.#closing === undefined && faultOfEngine() === undefined) this.store.closeSnapshot(snapshot);
    }
  }

  /** Closes the store; safe to call twice. Resolves when another tab could open it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** A closed store keeps no room that it does not need. Not being able to shrink is no reason not to close. */
  #giveBack(): void {
    try {
      this.store.seal();
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
    this.#flusher.stop();
    this.#quota?.stop();
    void this.#jobs.stop();
  }

  /** What is staged may need a segment of its own; without a log, what is in memory needs tables. */
  async #closeStore(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#slots.keep();
      await this.#slots.settled();
      this.#giveBack();
      try {
        this.store.close();
        return;
      } catch (error) {
        if (attempt === CLOSE_ATTEMPTS_MAX || (error as { code?: unknown }).code !== 'VARVE_BUSY') throw error;
      }
    }
  }

  async #close(): Promise<void> {
    this.#flusher.stop();
    this.#quota?.stop();
    await this.#jobs.stop();
    try {
      if (faultOfEngine() === undefined) {
        await this.#closeStore();
        await this.settle();
      }
    } catch (error) {
      // A poisoned store has nothing left to write, and whoever wrote to it was told.
      if (!(error instanceof VarveError) || error.code !== 'VARVE_POISONED') throw error;
    } finally {
      this.#unwatch();
      unregisterDevice(this.#deviceId);
      await this.#device.closeAll();
      await this.#planting;
      await this.#lock.release();
    }
  }
}

/** What the other storage of the origin knows of a store that was made just now. */
interface Canary {
  readonly recovery: RecoveryReport;
  /** Resolves when the note is there, or cannot be. */
  readonly planting: Promise<void>;
}

async function askCanary(name: string, kind: string, recovery: RecoveryReport): Promise<Canary> {
  if (recovery.state !== 'new' || (kind !== 'opfs' && kind !== 'indexeddb')) {
    return { recovery, planting: Promise.resolve() };
  }
  const wasThere = await hasCanary(name, kind);
  return { recovery: wasThere ? { ...recovery, state: 'lost' } : recovery, planting: plantCanary(name, kind) };
}

/** Whether nobody else can have the store, or its adapter sees to that. */
function locksItself(options: EngineHostOptions): boolean {
  return options.storage === 'memory' || options.device?.kind === 'memory' || options.adapter !== undefined;
}

async function deviceOf(name: string, options: EngineHostOptions): Promise<OpenedDevice> {
  const { adapter, signal, wait = WAIT_MS_DEFAULT } = options;
  if (options.device !== undefined) return { device: options.device, report: { kind: options.device.kind } };
  if (adapter === undefined)
    return openDevice(name, options.storage, { wait: HANDLES_WAIT_MS, signal }, options.indexedDb);
  return { device: await adapter.open(name, { wait, signal }), report: { kind: adapter.kind } };
}

/** Who makes the compactor worker. The one of the host opens slots of OPFS: those of an adapter it does not know. */
function compactorOf(device: ManagedDevice, options: EngineHostOptions): SpawnCompactor | undefined {
  if (options.slices || !device.lendable) return undefined;
  return options.adapter === undefined ? options.compactor : device.compactor?.spawn;
}

/** Recovers what is in the device. */
async function openOn(
  device: ManagedDevice,
  engine: Engine,
  deviceId: number,
  settings: StoreSettings,
): Promise<EngineStore> {
  const open = (): EngineStore => EngineStore.open(engine, deviceId, settings);
  if (!isSettling(device)) return open();
  const store = await device.recover(open);
  await device.settle();
  return store;
}

function closedError(): VarveError {
  return new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
}

function settingsOf(options: EngineHostOptions): StoreSettings {
  const memory = options.memory ?? MEMORY_BYTES_DEFAULT;
  if (!(memory >= MEMORY_BYTES_MIN && memory <= 2 ** 31)) {
    throw new VarveError('VARVE_INVALID_ARGUMENT', 'The option memory is a number of bytes from 1 MiB to 2 GiB.');
  }
  const wait = options.wait ?? 0;
  if (!(wait >= 0 && wait <= 2 ** 31 - 1)) {
    throw new VarveError('VARVE_INVALID_ARGUMENT', 'The option wait is a number of milliseconds from 0 to 2^31 - 1.');
  }
  return { memory_bytes: Math.floor(memory), files_max: 128, log: options.durability !== 'memory' };
}
