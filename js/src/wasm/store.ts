/**
 * One open store of the engine: its number, and calls that throw a `VarveError` instead of returning a negative number.
 *
 * Invariant: made once by `openStore`; after `close` no call may be made. The hot path (sync store, frames) uses
 * `exports` and `memory` directly and uses this class for errors only.
 */

import { closedError, type VarveError } from '../errors.ts';
import type { RecoveryReport, StoreStats } from '../types.ts';
import { attempt, errorOf } from './call.ts';
import { type DataKeys, encodeKeys } from './data-keys.ts';
import type { Engine } from './engine.ts';
import type { EngineExports, StoreSettings } from './exports.ts';
import type { EngineFault } from './fault.ts';
import type { JobTicket } from './job-ticket.ts';
import type { EngineMemory } from './memory.ts';
import { statsOf } from './stats.ts';

/** The state in which a store was found, by the engine's number. */
const STATES = ['new', 'clean', 'replayed', 'torn'] as const;

/** A store that the engine has open. */
export class EngineStore {
  readonly h: number;
  /** A store that was made after another of this name was deleted has another id. */
  readonly id: string;
  readonly recovery: RecoveryReport;
  readonly exports: EngineExports;
  readonly memory: EngineMemory;
  readonly fault: EngineFault;
  readonly #engine: Engine;
  /** If true, another store may have its number. */
  #isClosed = false;

  private constructor(engine: Engine, h: number) {
    const { memory } = engine;
    this.h = h;
    this.recovery = {
      state: STATES[memory.fresh().out[0] ?? 0] ?? 'new',
      records: memory.outU64(2),
      recordsDropped: memory.outU64(4),
    };
    this.id = memory.out.slice(6, 10).join('-');
    this.exports = engine.exports;
    this.memory = memory;
    this.fault = engine.fault;
    this.#engine = engine;
  }

  /** Opens the store in a registered device, or makes a new one there. */
  static open(engine: Engine, device: number, settings: StoreSettings): EngineStore {
    const { memoryBytes, filesMax, log, deferred = false, historyBytes } = settings;
    const idAndEntropy = crypto.getRandomValues(new Uint8Array(24));
    engine.memory.put(idAndEntropy);
    if (settings.encryption) giveKeys(engine, settings.encryption);
    const h = attempt(engine, () =>
      engine.exports.varve_open(
        device,
        memoryBytes,
        filesMax,
        Number(log) | (deferred ? 2 : 0),
        historyBytes,
        Date.now(),
      ),
    );
    return new EngineStore(engine, h);
  }

  /** The key slots of the store in a registered device; undefined if there is none, or it is not encrypted. */
  static keySlots(engine: Engine, device: number): Uint8Array<ArrayBuffer> | undefined {
    const hasSlots = attempt(engine, () => engine.exports.varve_key_slots(device)) === 1;
    return hasSlots ? engine.memory.takeOut() : undefined;
  }

  /** Changes the data keys and the key slots at once. The keys that `keysInUse` names must be among the new ones. */
  changeKeys(keys: DataKeys): void {
    giveKeys(this.#engine, keys);
    this.#call(() => this.exports.varve_change_keys(this.h));
  }

  /** The numbers of the data keys that files need, ascending; 0 stands for files that are not encrypted. */
  keysInUse(): number[] {
    this.#call(() => this.exports.varve_keys_in_use(this.h));
    const bytes = this.memory.takeOut();
    return Array.from({ length: bytes.length / 2 }, (_, i) => (bytes[2 * i] ?? 0) + (bytes[2 * i + 1] ?? 0) * 256);
  }

  /** The error behind a negative status of a raw export. */
  error(status: number): VarveError {
    return errorOf(this.#engine, status);
  }

  /** Returns a status that is not an error; throws the error otherwise. */
  check(status: number): number {
    if (status < 0) throw this.error(status);
    return status;
  }

  /** Sets the time of the engine, which has no clock of its own. */
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
    this.#call(() => this.exports.varve_acknowledged(this.h));
    return this.memory.outSequence();
  }

  /** The value of a key, in bytes; undefined if it is absent. */
  get(key: Uint8Array): Uint8Array | undefined {
    this.memory.put(key);
    const isThere = this.#call(() => this.exports.varve_get_entry(this.h, key.length, 0)) !== 0;
    return isThere ? this.memory.takeOut() : undefined;
  }

  /** Whether a writer should wait for a flush or a compaction. */
  isStalled(): boolean {
    return this.#call(() => this.exports.varve_stalled(this.h)) === 1;
  }

  /** Opens a snapshot for the host, under a number that no client chooses; returns the number. */
  openSnapshot(): number {
    return this.#call(() => this.exports.varve_snapshot_open(this.h, 1));
  }

  closeSnapshot(snapshot: number): void {
    this.#call(() => this.exports.varve_snapshot_close(this.h, snapshot));
  }

  /** Closes everything that a client has open. Unless the client may return, the requests that it could have sent again are removed, too. */
  releaseClient(client: number, mayReturn: boolean): void {
    const high = Math.floor(client / 0x1_0000_0000);
    this.#call(() => this.exports.varve_release_client(this.h, client >>> 0, high, Number(mayReturn)));
  }

  /** Whether a write was done that a client sends again. */
  isDone(client: number, request: number): boolean {
    const high = Math.floor(client / 0x1_0000_0000);
    return this.#call(() => this.exports.varve_is_done(this.h, client >>> 0, high, request)) === 1;
  }

  /** Takes the snapshots and scans of a store that was open on the same device before, as far as they can continue. */
  adopt(former: EngineStore): void {
    attempt(this.#engine, () => this.exports.varve_adopt(this.h, former.h));
  }

  stats(): StoreStats {
    this.#call(() => this.exports.varve_stats(this.h));
    return statsOf(new Float64Array(this.memory.takeOut().buffer));
  }

  /** Bytes of its memory that the cache does not use; 0 once the store is closed or broken. */
  freeCacheBytes(): number {
    if (this.#isClosed || this.fault.found !== undefined) return 0;
    const { cache } = this.stats();
    return cache.maxBytes - cache.bytes - cache.indexBytes;
  }

  sync(): void {
    this.#call(() => this.exports.varve_sync(this.h));
  }

  seal(): void {
    this.#call(() => this.exports.varve_seal(this.h));
  }

  /** Flushes the writes that the next opening would have to replay, if they are many. */
  foldLog(): void {
    this.#call(() => this.exports.varve_fold_log(this.h));
  }

  release(): void {
    this.#call(() => this.exports.varve_release(this.h));
  }

  /** Sets how many bytes the quota leaves. Below 0: none are left, and a write was refused for that reason. */
  setRoom(bytes: number): void {
    this.#call(() => this.exports.varve_set_room(this.h, bytes));
  }

  /** Reports a write that was refused before it reached the engine, because there was no space. */
  wantRoom(): void {
    this.#call(() => this.exports.varve_want_room(this.h));
  }

  /** Sets how many bytes spare files may have in total when a file is deleted. */
  setSpare(bytes: number): void {
    this.#call(() => this.exports.varve_set_spare(this.h, bytes));
  }

  /** Frees spare space; with `isIdle`, merges then remove overwritten entries. */
  shrink(isIdle = false): void {
    this.#call(() => this.exports.varve_shrink(this.h, Number(isIdle)));
  }

  askForCompaction(): void {
    this.#call(() => this.exports.varve_ask_for_compaction(this.h));
  }

  /** Ends a scan, unless the store is closed: then its number may belong to another store. */
  closeScan(cursor: number): void {
    if (this.#isClosed || this.fault.found !== undefined) return;
    attempt(this.#engine, () => this.exports.varve_scan_close(this.h, cursor));
  }

  /** Closes the store. It counts as closed even if that fails. */
  close(): void {
    this.#isClosed = true;
    attempt(this.#engine, () => this.exports.varve_close(this.h));
  }

  takeJob(): JobTicket | undefined {
    const kind = this.#call(() => this.exports.varve_take_job(this.h));
    if (kind === 0) return undefined;
    const { 2: id = 0, 3: givesRoom } = this.memory.fresh().out;
    const bytesHint = this.memory.outU64(4);
    const spec = this.memory.takeOut(true);
    return { id, kind: kind === 1 ? 'flush' : 'compaction', givesRoom: givesRoom === 1, spec, bytesHint };
  }

  finishJob(id: number, result: Uint8Array): void {
    this.memory.give(result);
    this.#call(() => this.exports.varve_finish_job(this.h, id));
  }

  /** Drops a job that failed; `isFull`: because there was no space. */
  failJob(id: number, isFull: boolean): void {
    this.#call(() => this.exports.varve_fail_job(this.h, id, isFull ? 1 : 0));
  }

  /** A running job cannot read this table: other tables are merged around it. */
  noteDamage(table: number): void {
    this.#call(() => this.exports.varve_note_damage(this.h, table));
  }

  /** Whether the store has a table that a job of this session could not read. */
  hasDamage(): boolean {
    return this.#call(() => this.exports.varve_has_damage(this.h)) === 1;
  }

  runSlice(entries: number): boolean {
    return this.#call(() => this.exports.varve_run_slice(this.h, entries)) === 1;
  }

  readInput(table: number, offset: number, length: number): Uint8Array<ArrayBuffer> {
    this.#call(() => this.exports.varve_read_input(this.h, table, offset, length));
    return this.memory.takeOut();
  }

  lend(table: number, bytesHint: number): number | undefined {
    const slotAndOne = this.#call(() => this.exports.varve_lend(this.h, table, bytesHint));
    return slotAndOne === 0 ? undefined : slotAndOne - 1;
  }

  reclaim(table: number, size: number): void {
    this.#call(() => this.exports.varve_reclaim(this.h, table, size));
  }

  discard(table: number): void {
    this.#call(() => this.exports.varve_abort_lent(this.h, table));
  }

  wantedSlots(): number {
    return this.#call(() => this.exports.varve_wanted_slots(this.h));
  }

  slotsAdded(): void {
    this.#call(() => this.exports.varve_slots_added(this.h));
  }

  /** Makes every call except those of the hot path, which catch errors themselves. */
  #call(call: () => number): number {
    if (this.#isClosed) throw closedError();
    return attempt(this.#engine, call);
  }
}

/** Gives data keys to the next call. */
function giveKeys(engine: Engine, keys: DataKeys): void {
  const bytes = encodeKeys(keys);
  engine.memory.give(bytes);
  bytes.fill(0);
}
