/**
 * One open store of the engine: its number, and calls that answer with a `VarveError` instead of a number.
 *
 * Invariant: made once by `openStore`; after `close` no call may be made. The hot path (sync store, frames) uses
 * `exports` and `memory` directly and comes here for the error only.
 */

import { VarveError } from '../errors.ts';
import type { RecoveryReport, StoreStats } from '../types.ts';
import { controlError } from './errors.ts';
import type { Engine, EngineControl, EngineExports, JobTicket, OpenedStore, StoreSettings } from './exports.ts';
import { faultOfEngine } from './fault.ts';
import type { EngineMemory } from './memory.ts';
import { statsOf } from './stats.ts';

/** A store that the engine has open. */
export class EngineStore {
  readonly h: number;
  readonly recovery: RecoveryReport;
  readonly exports: EngineExports;
  readonly memory: EngineMemory;
  readonly #control: EngineControl;
  /** Its number may be another store's by now. */
  #isClosed = false;

  private constructor(engine: Engine, opened: OpenedStore) {
    this.h = opened.handle;
    this.recovery = { state: opened.state, records: opened.records, recordsDropped: opened.recordsDropped };
    this.exports = engine.exports;
    this.memory = engine.memory;
    this.#control = engine.control;
  }

  /** Opens the store in a registered device, or makes a new one there. */
  static open(engine: Engine, device: number, settings: StoreSettings): EngineStore {
    const random = crypto.getRandomValues(new Uint32Array(2));
    const storeId = crypto.getRandomValues(new Uint8Array(16));
    const opened = attempt(() =>
      engine.control.open_store(device, settings, Date.now(), random[0] ?? 0, random[1] ?? 0, storeId),
    );
    return new EngineStore(engine, opened);
  }

  /** The error behind a negative status of a raw export. */
  error(status: number): VarveError {
    return VarveError.fromNumber(
      -status,
      attempt(() => this.#control.last_error(this.h)),
    );
  }

  /** Passes a status that is fine, throws the error of one that is not. */
  check(status: number): number {
    if (status < 0) throw this.error(status);
    return status;
  }

  /** Tells the engine the time; it has no clock of its own. */
  tick(): void {
    this.#call(() => this.exports.varve_now(this.h, Date.now()));
  }

  /** Whether the storage has writes that a power cut could still take. */
  isUnsynced(): boolean {
    return this.#call(() => this.exports.varve_unsynced(this.h)) === 1;
  }

  /** Writes since the log was last sealed. */
  writesSinceSeal(): number {
    return this.#call(() => this.exports.varve_unsealed(this.h));
  }

  /** The sequence of the last acknowledged write. */
  acknowledged(): number {
    this.check(this.#call(() => this.exports.varve_acknowledged(this.h)));
    return this.memory.outSequence();
  }

  /** Whether a writer should wait for a flush or a compaction. */
  isStalled(): boolean {
    return this.#call(() => this.exports.varve_stalled(this.h)) === 1;
  }

  /** Opens a snapshot; gives its number. */
  openSnapshot(): number {
    return this.check(this.#call(() => this.exports.varve_snapshot_open(this.h)));
  }

  closeSnapshot(snapshot: number): void {
    this.#call(() => this.exports.varve_snapshot_close(this.h, snapshot));
  }

  /** Lets go of what a client has open and, unless it may return, of what it could have asked for again. */
  forgetClient(client: number, mayReturn: boolean): void {
    const high = Math.floor(client / 0x1_0000_0000);
    this.#call(() => this.exports.varve_forget_client(this.h, client >>> 0, high, Number(mayReturn)));
  }

  /** Takes the snapshots and scans of a store that was open on the same device before, as far as they can go on. */
  adopt(former: EngineStore): void {
    this.check(attempt(() => this.exports.varve_adopt(this.h, former.h)));
  }

  stats(): StoreStats {
    return statsOf(this.#call(() => this.#control.stats(this.h)));
  }

  sync(): void {
    this.#call(() => this.#control.sync(this.h));
  }

  seal(): void {
    this.#call(() => this.#control.seal(this.h));
  }

  /** Flushes what the next opening would have to replay, if it is much. */
  foldLog(): void {
    this.#call(() => this.#control.fold_log(this.h));
  }

  release(): void {
    this.#call(() => this.#control.release(this.h));
  }

  /** Tells the engine how many bytes the quota leaves. */
  setRoom(bytes: number): void {
    this.#call(() => this.#control.set_room(this.h, bytes));
  }

  shrink(): void {
    this.#call(() => this.#control.shrink(this.h));
  }

  freeze(): void {
    this.#call(() => this.#control.freeze(this.h));
  }

  askForCompaction(): void {
    this.#call(() => this.#control.ask_for_compaction(this.h));
  }

  /** Ends a scan, unless the store is closed, and its number given to another one. */
  closeScan(cursor: number): void {
    if (!this.#isClosed && faultOfEngine() === undefined) attempt(() => this.exports.varve_scan_close(this.h, cursor));
  }

  /** Closes it, also when that fails, unless it answers `VARVE_BUSY`. */
  close(): void {
    this.#isClosed = true;
    try {
      attempt(() => this.#control.close_store(this.h));
    } catch (error) {
      this.#isClosed = (error as { code?: unknown }).code !== 'VARVE_BUSY';
      throw error;
    }
  }

  takeJob(): JobTicket | undefined {
    return this.#call(() => this.#control.take_job(this.h));
  }

  finishJob(id: number, result: Uint8Array): void {
    this.#call(() => this.#control.finish_job(this.h, id, result));
  }

  failJob(id: number): void {
    this.#call(() => this.#control.fail_job(this.h, id));
  }

  runSlice(entries: number): boolean {
    return this.#call(() => this.#control.run_slice(this.h, entries));
  }

  readInput(table: number, offset: number, length: number): Uint8Array {
    return this.#call(() => this.#control.read_input(this.h, table, offset, length));
  }

  lend(table: number, bytesHint: number): number {
    return this.#call(() => this.#control.lend(this.h, table, bytesHint));
  }

  reclaim(table: number, size: number): void {
    this.#call(() => this.#control.reclaim(this.h, table, size));
  }

  abandon(table: number): void {
    this.#call(() => this.#control.abandon(this.h, table));
  }

  wantedSlots(): number {
    return this.#call(() => this.#control.wanted_slots(this.h));
  }

  slotsAdded(): void {
    this.#call(() => this.#control.slots_added(this.h));
  }

  /** Every call but those of the hot path, which catch for themselves. */
  #call<T>(call: () => T): T {
    if (this.#isClosed) throw new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
    return attempt(call);
  }
}

/** A call into the engine. */
function attempt<T>(call: () => T): T {
  const fault = faultOfEngine();
  if (fault !== undefined) throw fault;
  try {
    return call();
  } catch (error) {
    throw controlError(error);
  }
}
