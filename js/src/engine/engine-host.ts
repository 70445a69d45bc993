/**
 * One open store with everything around it: lock, device, engine, maintenance.
 *
 * Order of life: lock -> slots -> engine -> (serve) -> engine closed and sealed -> slots closed -> lock released.
 *
 *     close    logs and seals everything, and then releases slots and lock
 *     abort    releases them without another write
 *     goBack   hands them to another host, which has the store as it was committed
 *
 * Invariant: once a write to the storage failed, the engine refuses writes by itself; reads continue. However a host ends, its slots
 * and its lock are released.
 *
 * Used by the engine worker, which runs frames on it, and by the synchronous store, which calls the engine directly.
 */

import type { Locked } from '../encryption/slots.ts';
import type { UserKey } from '../encryption/user-key.ts';
import { closedError, VarveError } from '../errors.ts';
import type { KeyChange } from '../protocol/messages.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import { type DeferredDevice, isDeferred, type ManagedDevice, type OutputGate } from '../storage/device.ts';
import { originStorage } from '../storage/origin.ts';
import { type CheckInput, readSlot, runCheck, survey } from '../tools/check.ts';
import { loadTools } from '../tools/instance.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import type { Progress, RecoveryReport, StorageReport, StoreStats } from '../types.ts';
import { encodeKeys } from '../wasm/data-keys.ts';
import type { EngineStore } from '../wasm/store.ts';
import { checkInWorker } from './checker-link.ts';
import { abort, type EngineHostOptions, type HostParts, openParts } from './host-parts.ts';
import { Upkeep } from './upkeep.ts';

/** An open store. */
export class EngineHost {
  readonly name: string;
  readonly store: EngineStore;
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
  readonly upkeep: Upkeep;
  readonly #device: ManagedDevice;
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
  #closing: Promise<void> | undefined;

  private constructor(name: string, parts: HostParts, onTurn: (() => void) | undefined) {
    const { store, device, storage, recovery } = parts;
    this.#parts = parts;
    this.#onTurn = onTurn;
    this.name = name;
    this.store = store;
    this.storage = storage;
    this.recovery = recovery;
    this.#device = device;
    this.upkeep = new Upkeep({ ...parts, onTurn });
    this.onEnd(() => void this.upkeep.shutDown());
    device.onLost = (cause) => {
      this.#lost = cause;
      for (const listener of [...this.#watches.keys()]) listener(cause);
    };
  }

  /** Opens a store; throws what `openParts` does. */
  static async open(name: string, options: EngineHostOptions): Promise<EngineHost> {
    const host = new EngineHost(name, await openParts(name, options), options.onTurn);
    try {
      host.upkeep.begin(options.hold?.());
      return host;
    } catch (error) {
      await host.close().catch(() => undefined);
      throw error;
    }
  }

  /** The device, if its writes are committed later. */
  get deferred(): DeferredDevice | undefined {
    return isDeferred(this.#device) ? this.#device : undefined;
  }

  /** The gate that delays the answers of a turn, if the device has one. */
  get gate(): OutputGate | undefined {
    return this.#device.gate;
  }

  /** Whether writes are logged. */
  get hasLog(): boolean {
    return this.#parts.hasLog;
  }

  /** Whether `goBack` can continue after a commit was refused for lack of room: no acknowledged write is in memory alone. */
  get canGoBack(): boolean {
    return this.#parts.commits.canGoBack && this.hasLog;
  }

  /**
   * Goes back to the committed state after the storage refused a commit for lack of room. Returns the host that takes the place of
   * this one. It has the same lock and device, and the engine's store opened again. Snapshots and scans continue as far as they can.
   */
  async goBack(refusal: VarveError): Promise<EngineHost> {
    this.#successor = refusal;
    await this.upkeep.shutDown();
    const acknowledged = this.store.acknowledged();
    await this.#parts.commits.goBack();
    const parts = await this.#parts.again();
    for (const snapshot of this.#snapshots) this.store.closeSnapshot(snapshot);
    parts.store.adopt(this.store);
    this.#closing = Promise.resolve();
    this.#unwatch();
    abort(this.#parts);
    const successor = new EngineHost(this.name, parts, this.#onTurn);
    successor.hasLost = acknowledged !== parts.store.acknowledged();
    successor.upkeep.follow(this.upkeep);
    return successor;
  }

  /** Resolves when all that was done so far is committed, and may be acknowledged. */
  async committed(): Promise<void> {
    try {
      await this.#parts.commits.committed();
    } catch (error) {
      throw commitFailure(error);
    }
  }

  /** Calls back when the engine had a fault, or the store was aborted or taken away; returns a function that ends the subscription. */
  onEnd(listener: (cause: VarveError) => void): () => void {
    const end = this.store.fault.onFault(listener);
    this.#watches.set(listener, end);
    return end;
  }

  /** Closes the snapshots and scans of a client. Unless the client may return, its receipts are dropped too. */
  releaseClient(client: number, mayReturn: boolean): void {
    if (this.#closing === undefined && this.store.fault.found === undefined)
      this.store.releaseClient(client, mayReturn);
  }

  /** The value of a key, in bytes; undefined if it is absent. */
  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#parts.commits.resident(() => this.store.get(key));
  }

  /** Numbers about the store. */
  stats(): StoreStats {
    return this.upkeep.stats();
  }

  /** The same, with the browser's numbers about the origin. */
  async statsNow(): Promise<StoreStats> {
    const isOfBrowser = this.#device.kind === 'opfs' || this.#device.kind === 'indexeddb';
    const origin = isOfBrowser ? await originStorage() : undefined;
    this.#ensureOpen();
    return { ...this.stats(), origin };
  }

  /** Verifies the key of a client that joins; undefined if there is nothing to wait for. Rejects with `VARVE_KEY`. */
  verifyKey(user: UserKey | undefined): Promise<void> | undefined {
    return this.#parts.keys.verify(user);
  }

  /** Changes the keys of the store. Resolves with whether the caller's own key does not open it any more. */
  async changeKeys(change: KeyChange): Promise<boolean> {
    const { commits, keys } = this.#parts;
    this.#ensureOpen();
    const store = {
      changeKeys: async (locked: Locked): Promise<void> => {
        this.#ensureOpen();
        await commits.resident(() => this.store.changeKeys(locked));
        await this.committed();
        this.upkeep.afterTurn();
      },
      keysInUse: async () => commits.resident(() => this.store.keysInUse()),
    };
    return keys.change(store, change);
  }

  /** Flushes everything and merges it into one run. Writes that come meanwhile may be left out of it. */
  async compact(onProgress?: (progress: Progress) => void): Promise<void> {
    await this.upkeep.compact(() => this.#ensureOpen(), onProgress);
    await this.committed();
  }

  /** Verifies every file, in a worker if possible. The store continues and serves the bytes, 1 MiB at a time. */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    const module = await loadTools(options.tools);
    options.signal?.throwIfAborted();
    this.#ensureOpen();
    const { commits, keys, spawn } = this.#parts;
    let snapshot: number | undefined;
    // This must happen in one turn; otherwise all of it is done again. The copied manifest must name the tables that the snapshot keeps,
    // and its keys must be at hand.
    const copy = (): CheckInput => {
      this.#unpin(snapshot);
      snapshot = this.store.openSnapshot();
      this.#snapshots.add(snapshot);
      const input = survey(this.#device, this.stats().log.segmentBytes || (this.recovery.state === 'torn' ? 0 : -1));
      return { ...input, keys: keys.now && encodeKeys(keys.now) };
    };
    try {
      const input = await keys.between(() => commits.resident(copy));
      const read = (slot: number, at: number, length: number) => readSlot(this.#device, slot, at, length);
      if (spawn !== undefined) return await checkInWorker(spawn, module, input, read, options);
      const readLater = (slot: number, at: number, length: number) => {
        const call = (): Uint8Array<ArrayBuffer> => {
          // After a close or a revival, the slots may contain the files of another store.
          this.#ensureOpen();
          return read(slot, at, length);
        };
        return commits.resident(call);
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

  /** Ends it without another write: its owner is gone, and a successor may have the store open. The device must not be used any more. */
  abort(): void {
    if (this.#closing !== undefined) return;
    this.#closing = Promise.resolve();
    for (const listener of this.#watches.keys()) listener(closedError());
    this.#unwatch();
    abort(this.#parts);
    this.#parts.keys.erase();
    void this.#parts.lock.release();
  }

  #ensureOpen(): void {
    if (this.#successor !== undefined) throw this.#successor;
    if (this.#closing !== undefined) throw closedError();
  }

  #unwatch(): void {
    for (const end of this.#watches.values()) end();
    this.#watches.clear();
  }

  async #close(): Promise<void> {
    const lost = this.#lost;
    try {
      await this.upkeep.shutDown();
      // A host that has a successor, or will have one soon, must not overwrite the successor's data.
      if (this.#parts.commits.isQuiet || this.#successor !== undefined) abort(this.#parts);
      else if (this.store.fault.found === undefined) {
        this.#closeStore();
        await this.committed();
      }
    } catch (error) {
      // A poisoned store has nothing left to write, and its writers already got the error. Writers also got the error when
      // the storage had no room for their writes.
      const nothingLost = this.canGoBack ? ['VARVE_POISONED', 'VARVE_STORAGE_FULL'] : ['VARVE_POISONED'];
      const isKnown = lost !== undefined || (error instanceof VarveError && nothingLost.includes(error.code));
      if (!isKnown) throw this.#lost ?? error;
    } finally {
      await this.#release();
    }
    // The loss was found while closing, and is not reported yet.
    if (this.#lost !== lost) throw this.#lost;
  }

  /** Logs, seals and closes. The store is closed even if that fails. */
  #closeStore(): void {
    let failure: unknown;
    try {
      this.store.seal();
    } catch (error) {
      // It does not come again: the store is poisoned, or has dropped what it could not log. `close` once lost buffered writes silently.
      failure = error;
    }
    try {
      // The next opening has little log to replay, and room that is not needed is free.
      this.store.foldLog();
      this.store.shrink();
    } catch {
      // An error that matters comes again when the store is closed.
    }
    try {
      this.store.close();
    } catch (error) {
      failure ??= error;
    }
    if (failure !== undefined) throw failure;
  }

  /** Releases files and lock, whatever happened to the store, so that the next caller can open it. */
  async #release(): Promise<void> {
    this.#unwatch();
    this.#parts.release();
    this.#parts.keys.erase();
    try {
      await this.#device.closeAll();
      await this.#parts.planting;
    } finally {
      await this.#parts.lock.release();
    }
  }
}
