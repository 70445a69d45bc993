/**
 * What an open store is made of, opened in its order: lock -> slots -> engine.
 *
 * Invariant: either all of it is there or nothing is left: what was opened before a step that fails is let go of, whatever
 * letting go of it meets.
 */

import { abortError, VarveError } from '../errors.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import { hasCanary, plantCanary } from '../storage/canary.ts';
import { isSettling, type ManagedDevice, type SettlingDevice, SlotError } from '../storage/device.ts';
import { acquireLock, type StoreLock } from '../storage/lock.ts';
import { type OpenedDevice, type OpenIndexedDb, openDevice } from '../storage/open-device.ts';
import type { EngineOptions, RecoveryReport, StorageReport } from '../types.ts';
import type { Engine, StoreSettings } from '../wasm/exports.ts';
import { instantiate, loadEngine, type WasmSource } from '../wasm/load.ts';
import { EngineStore } from '../wasm/store.ts';
import { CompactorLink, type JobsBeside, type SpawnCompactor } from './compactor-link.ts';
import { settlingFailure } from './settling-failure.ts';
import { SettlingJobs } from './settling-jobs.ts';

const WAIT_MS_DEFAULT = 5000;
/** A dead worker's handles are closed a moment after its lock is free. */
const HANDLES_WAIT_MS = 5000;
const MEMORY_BYTES_DEFAULT = 32 * 1024 * 1024;
/**
 * What a storage that answers later keeps beside the engine's cache, as a share of `memory`. The engine keeps blocks of 4 KiB, and
 * what is fetched has sixteen of them: without it a store that is read at random is fetched sixteen times until it is in memory.
 */
const SPARE_SHARE = 1 / 4;
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
  /** The store's lock, where it is held already. */
  lock?: StoreLock | undefined;
  /** Until what it gives resolves no job is started, so that what was open elsewhere can be opened here as it was. */
  hold?: (() => Promise<void>) | undefined;
  /** Called at the end of a turn by a host behind an output gate, instead of starting jobs: see `isDue` and `slice`. */
  onTurn?: (() => void) | undefined;
  /** A device to use instead of opening one, for tests. */
  device?: ManagedDevice | undefined;
}

/** The parts of one open store. */
export interface HostParts {
  readonly store: EngineStore;
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
  readonly device: ManagedDevice;
  /** Lets go of the device: the engine's store hears nothing from it any more. */
  readonly cutOff: () => void;
  readonly lock: StoreLock;
  /** Runs jobs beside the engine; without it they run in slices. */
  readonly compactor: JobsBeside | undefined;
  readonly spawn: SpawnCompactor | undefined;
  /** Resolves when the note in the other storage of the origin is there, or cannot be. */
  readonly planting: Promise<void>;
  /** All that was acknowledged is in the device. */
  readonly hasLog: boolean;
  /** The same parts with the engine's store opened once more, beside the one that is. */
  again(): Promise<HostParts>;
}

/**
 * Opens a store.
 * @throws `VARVE_LOCKED`, `VARVE_CORRUPT`, `VARVE_VERSION`, `VARVE_STORAGE_FULL`, `VARVE_UNSUPPORTED`, `VARVE_ABORTED`.
 */
export async function openParts(name: string, options: EngineHostOptions): Promise<HostParts> {
  const settings = settingsOf(options);
  const wait = options.wait ?? WAIT_MS_DEFAULT;
  const { signal } = options;
  const loading = loadEngine(options.wasm);
  loading.catch(() => undefined);
  const lock =
    options.lock ??
    (locksItself(options) ? { release: async () => undefined } : await acquireLock(name, { wait, signal }));
  let device: ManagedDevice | undefined;
  let cutOff: (() => void) | undefined;
  let store: EngineStore | undefined;
  try {
    const opened = await deviceOf(name, options);
    device = opened.device;
    const module = await loading;
    if (signal?.aborted) throw abortError(signal);
    const open = openerOf(device, instantiate(module), {
      ...settings,
      filesMax: device.slotsMax,
      settles: isSettling(device),
    });
    let first = await open();
    ({ store, cutOff } = first);
    if (isSettling(device) && !(await isSettled(device))) {
      // There is no room for what recovery wrote, which can wait: the store is read, and that goes with the first write.
      leave(first);
      first = await open();
      ({ store, cutOff } = first);
    }
    const spawn = compactorOf(device, options);
    const compactor = jobsOn(device, module, spawn, name);
    const canary = await askCanary(name, opened.report.kind, store.recovery);
    const opening = { device, lock, storage: opened.report, ...canary, compactor, spawn, hasLog: settings.log };
    return partsOf({ ...opening, ...first }, open, () => jobsOn(opened.device, module, spawn, name));
  } catch (error) {
    try {
      store?.close();
    } catch {
      // The next opening recovers it.
    }
    cutOff?.();
    // Why it did not open matters more than what closing it meets.
    await device?.closeAll().catch(() => undefined);
    await lock.release();
    throw signal?.aborted ? abortError(signal) : settlingFailure(error);
  }
}

/** Settles what opening wrote; false where there is no room for it, and the device went back to what the storage holds. */
async function isSettled(device: SettlingDevice): Promise<boolean> {
  try {
    await device.settle();
    return true;
  } catch (error) {
    const isFull = error instanceof SlotError && error.kind === 'full';
    if (!isFull || !device.canGoBack) throw error;
    await device.goBack();
    // A store that is not there yet needs room.
    if (device.count() === 0) throw error;
    return false;
  }
}

/** Lets go of an engine's store whose device went back behind it. */
function leave({ store, cutOff }: OpenedStore): void {
  cutOff();
  try {
    store.close();
  } catch {
    // The engine has let go of its memory.
  }
}

/** Who runs jobs beside the engine. */
function jobsOn(
  device: ManagedDevice,
  module: WebAssembly.Module,
  spawn: SpawnCompactor | undefined,
  name: string,
): JobsBeside | undefined {
  if (isSettling(device)) return new SettlingJobs(module, device);
  return spawn === undefined ? undefined : new CompactorLink(spawn, module, device.compactor?.place ?? name);
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

/** A store that the engine opened in a device. */
type OpenedStore = Pick<HostParts, 'store' | 'cutOff'>;

/** Gives parts the way to open their store once more. */
function partsOf(
  parts: Omit<HostParts, 'again'>,
  open: () => Promise<OpenedStore>,
  jobs: () => JobsBeside | undefined,
): HostParts {
  const again = async (): Promise<HostParts> => partsOf({ ...parts, ...(await open()), compactor: jobs() }, open, jobs);
  return { ...parts, again };
}

/** What opens the store that is in a device, recovering it; each time in the same instance, so that a store can take over from the one before. */
function openerOf(device: ManagedDevice, engine: Engine, settings: StoreSettings): () => Promise<OpenedStore> {
  const recover = async (number: number): Promise<EngineStore> => {
    const open = (): EngineStore => EngineStore.open(engine, number, settings);
    if (!isSettling(device)) return open();
    device.allowSpare?.(settings.memoryBytes * SPARE_SHARE);
    const store = await device.recover(open);
    // Growing a slot costs nothing here, and what is kept for later would only take room.
    store.setSpare(0);
    return store;
  };
  return async () => {
    const number = engine.devices.register(device);
    const cutOff = (): void => engine.devices.unregister(number);
    try {
      return { store: await recover(number), cutOff };
    } catch (error) {
      cutOff();
      throw error;
    }
  };
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
  const log = options.durability !== 'memory';
  return { memoryBytes: Math.floor(memory), filesMax: 128, log, historyBytes: options.history ?? 0 };
}
