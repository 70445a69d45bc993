/**
 * The parts of an open store, opened in this order: lock -> slots -> engine.
 *
 * Invariant: either all parts are open or none is: when a step fails, the parts that were opened before it are closed, even if
 * closing them fails too.
 */

import type { EngineOptions } from '../protocol/messages.ts';
import { LOCK_TIMEOUT_DEFAULT, MEMORY_BYTES_DEFAULT, type StorageAdapter } from '../storage/adapter.ts';
import { hasCanary, plantCanary } from '../storage/canary.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import { type Commits, commitsOf } from '../storage/commits.ts';
import type { SpawnCompactor } from '../storage/compactor-port.ts';
import { isDeferred, type ManagedDevice, SlotError } from '../storage/device.ts';
import { acquireLock, type StoreLock } from '../storage/lock.ts';
import { type OpenedDevice, type OpenIndexedDb, openDevice } from '../storage/open-device.ts';
import { HANDLES_WAIT_MS } from '../storage/opfs.ts';
import type { RecoveryReport, StorageReport } from '../types.ts';
import { loadEngine, type WasmSource } from '../wasm/compile.ts';
import type { Engine } from '../wasm/engine.ts';
import type { StoreSettings } from '../wasm/exports.ts';
import { instantiate } from '../wasm/instantiate.ts';
import { EngineStore } from '../wasm/store.ts';
import { CompactorLink, type JobsBeside } from './compactor-link.ts';
import { DeferredJobs } from './deferred-jobs.ts';
import type { LoadKeySlots } from './key-slots.ts';
import { StoreKeys } from './store-keys.ts';

/**
 * The cache of a storage that answers later, as a share of `memoryBytes`, in addition to the room that the engine's cache does not use
 * yet. The engine caches blocks of 4 KiB, and one fetch brings sixteen of them. Without this cache, a store that is read at random is
 * fetched sixteen times until it is all in memory.
 */
const SPARE_SHARE = 1 / 4;

/** How a host is opened. */
export interface EngineHostOptions extends Omit<EngineOptions, 'wasm'> {
  wasm?: WasmSource | undefined;
  signal?: AbortSignal | undefined;
  /** Makes the compactor worker; without it jobs run in slices. */
  compactor?: SpawnCompactor | undefined;
  /** Run jobs in slices, also where the device brings a compactor of its own. */
  slices?: boolean | undefined;
  /** The adapter that keeps the store, instead of a browser storage. */
  adapter?: StorageAdapter | undefined;
  /** Opens stores in IndexedDB; without it, IndexedDB is not used. */
  indexedDb?: OpenIndexedDb | undefined;
  /** Loads the code for encrypted stores. */
  keySlots: LoadKeySlots;
  /** The store's lock, if it is held already. */
  lock?: StoreLock | undefined;
  /** No job starts until its promise resolves, so that snapshots and scans from another leader can be reopened here as they were. */
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
  readonly commits: Commits;
  /** Releases the device: the engine's store can no longer use it. */
  readonly release: () => void;
  readonly lock: StoreLock;
  /** Runs jobs beside the engine; without it they run in slices. */
  readonly compactor: JobsBeside | undefined;
  readonly spawn: SpawnCompactor | undefined;
  /** Resolves when the note in the other storage of the origin is written, or cannot be written. */
  readonly planting: Promise<void>;
  readonly keys: StoreKeys;
  /** Whether writes are logged: then every acknowledged write is in the device. */
  readonly hasLog: boolean;
  /** The same parts with the engine's store opened once more, beside the store that is already open. */
  again(): Promise<HostParts>;
}

/**
 * Opens a store.
 * @throws `VARVE_LOCKED`, `VARVE_CORRUPT`, `VARVE_VERSION`, `VARVE_STORAGE_FULL`, `VARVE_UNAVAILABLE`, `VARVE_UNSUPPORTED`; the signal's
 * `reason` when it aborts.
 */
export async function openParts(name: string, options: EngineHostOptions): Promise<HostParts> {
  const settings = settingsOf(options);
  const keys = new StoreKeys(options, options.keySlots);
  const { signal, lockTimeout = LOCK_TIMEOUT_DEFAULT } = options;
  // Both are done while the storage answers.
  const loading = loadEngine(options.wasm).then((module) => ({ module, engine: instantiate(module) }));
  loading.catch(() => undefined);
  const lock =
    options.lock ??
    (locksItself(options) ? { release: async () => undefined } : await acquireLock(name, { lockTimeout, signal }));
  let device: ManagedDevice | undefined;
  let release: (() => void) | undefined;
  let store: EngineStore | undefined;
  try {
    const opened = await deviceOf(name, options);
    device = opened.device;
    const { module, engine } = await loading;
    signal?.throwIfAborted();
    const deviceSettings = { ...settings, filesMax: device.slotsMax, deferred: isDeferred(device) };
    const open = openerOf(device, engine, deviceSettings, keys);
    const commits = commitsOf(device);
    let first = await open();
    ({ store, release } = first);
    if (!(await isCommitted(device, commits))) {
      // There is no room for the writes of recovery. They can wait: the store can be read, and they are committed with the first write.
      abort(first);
      first = await open();
      ({ store, release } = first);
    }
    const spawn = compactorOf(device, options);
    const compactor = jobsOn(device, module, spawn, name);
    const canary = await askCanary(name, opened.report.kind, store.recovery);
    const opening = {
      device,
      commits,
      lock,
      storage: opened.report,
      ...canary,
      compactor,
      spawn,
      keys,
      hasLog: settings.log,
    };
    return partsOf({ ...opening, ...first }, open, () => jobsOn(opened.device, module, spawn, name));
  } catch (error) {
    try {
      store?.close();
    } catch {
      // The next opening recovers the store.
    }
    release?.();
    keys.erase();
    // The reason why the store did not open matters more than an error from closing it.
    await device?.closeAll().catch(() => undefined);
    await lock.release();
    throw signal?.aborted ? signal.reason : commitFailure(error);
  }
}

/** Commits what opening wrote. Returns false if there is no room for it; then the device went back to the committed state. */
async function isCommitted(device: ManagedDevice, commits: Commits): Promise<boolean> {
  try {
    await commits.committed();
    return true;
  } catch (error) {
    const isFull = error instanceof SlotError && error.kind === 'full';
    if (!isFull || !commits.canGoBack) throw error;
    await commits.goBack();
    // A store that does not exist yet needs room.
    if (device.count() === 0) throw error;
    return false;
  }
}

/** Closes an engine's store without another write. */
export function abort({ store, release }: OpenedStore): void {
  release();
  try {
    store.close();
  } catch {
    // It could not be sealed, as intended. The engine has freed its memory.
  }
}

/** The parts that run jobs beside the engine. */
function jobsOn(
  device: ManagedDevice,
  module: WebAssembly.Module,
  spawn: SpawnCompactor | undefined,
  name: string,
): JobsBeside | undefined {
  if (isDeferred(device)) return new DeferredJobs(module, device);
  return spawn === undefined ? undefined : new CompactorLink(spawn, module, device.compactor?.place ?? name);
}

/** The result of asking the other storage of the origin about a store that was just created. */
interface Canary {
  readonly recovery: RecoveryReport;
  /** Resolves when the note is written, or cannot be written. */
  readonly planting: Promise<void>;
}

async function askCanary(name: string, kind: string, recovery: RecoveryReport): Promise<Canary> {
  if (recovery.state !== 'new' || (kind !== 'opfs' && kind !== 'indexeddb')) {
    return { recovery, planting: Promise.resolve() };
  }
  const wasThere = await hasCanary(name, kind);
  return { recovery: wasThere ? { ...recovery, state: 'lost' } : recovery, planting: plantCanary(name, kind) };
}

/** Whether no lock is needed: nobody else can open the store, or its adapter ensures that. */
function locksItself(options: EngineHostOptions): boolean {
  return options.storage === 'memory' || options.device?.kind === 'memory' || options.adapter !== undefined;
}

async function deviceOf(name: string, options: EngineHostOptions): Promise<OpenedDevice> {
  const { adapter, signal, lockTimeout = LOCK_TIMEOUT_DEFAULT } = options;
  if (options.device !== undefined) return { device: options.device, report: { kind: options.device.kind } };
  if (adapter === undefined)
    return openDevice(name, options.storage, { waitMs: HANDLES_WAIT_MS, signal }, options.indexedDb);
  return { device: await adapter.open(name, { lockTimeout, signal }), report: { kind: adapter.kind } };
}

/** The function that makes the compactor worker. The host's own compactor opens slots of OPFS; it cannot open slots of an adapter. */
function compactorOf(device: ManagedDevice, options: EngineHostOptions): SpawnCompactor | undefined {
  if (options.slices || !device.lendable) return undefined;
  return options.adapter === undefined ? options.compactor : device.compactor?.spawn;
}

/** A store that the engine opened in a device. */
type OpenedStore = Pick<HostParts, 'store' | 'release'>;

/** Adds `again` to parts, which opens their store once more. */
function partsOf(
  parts: Omit<HostParts, 'again'>,
  open: () => Promise<OpenedStore>,
  jobs: () => JobsBeside | undefined,
): HostParts {
  const again = async (): Promise<HostParts> => partsOf({ ...parts, ...(await open()), compactor: jobs() }, open, jobs);
  return { ...parts, again };
}

/** Returns a function that opens and recovers the store in a device. It uses the same instance each time: stores can adopt one another. */
function openerOf(
  device: ManagedDevice,
  engine: Engine,
  settings: StoreSettings,
  keys: StoreKeys,
): () => Promise<OpenedStore> {
  const slotsIn = async (number: number): Promise<Uint8Array | undefined> => {
    const read = (): Uint8Array | undefined => EngineStore.keySlots(engine, number);
    return commitsOf(device).resident(read);
  };
  const recover = async (number: number): Promise<EngineStore> => {
    const encryption = keys.areWanted ? await keys.forOpening(await slotsIn(number)) : undefined;
    const open = (): EngineStore => EngineStore.open(engine, number, { ...settings, encryption });
    if (!isDeferred(device)) return open();
    let store: EngineStore | undefined;
    device.allowSpare?.(() => settings.memoryBytes * SPARE_SHARE + (store?.freeCacheBytes() ?? 0));
    store = await device.recover(open);
    // Growing a slot costs nothing here, and spare files would only take room.
    store.setSpare(0);
    return store;
  };
  return async () => {
    const number = engine.devices.register(device);
    const release = (): void => engine.devices.unregister(number);
    try {
      return { store: await recover(number), release };
    } catch (error) {
      release();
      throw error;
    }
  };
}

function settingsOf(options: EngineHostOptions): StoreSettings {
  const { memoryBytes = MEMORY_BYTES_DEFAULT, historyBytes = 0 } = options;
  const log = options.durability !== 'memory';
  return { memoryBytes, filesMax: 128, log, historyBytes };
}
