/**
 * What the compiled engine offers, as types.
 *
 * Two halves. Raw exports take and give numbers only and are called millions of times: bytes go in through the scratch,
 * answers come back through the out cells (wasm/memory.ts). The control plane is made by wasm-bindgen and called rarely.
 *
 * Invariant: a raw export returns 0 or more when it is fine and the negated number of an error code when it is not;
 * the control plane throws a `JsError` whose message begins with that number and a space.
 */

import type { EngineMemory } from './memory.ts';

/** The raw exports. `h` is the number of a store that `open_store` gave. */
export interface EngineExports {
  readonly memory: WebAssembly.Memory;
  varve_scratch(bytes: number): number;
  varve_out(): number;
  varve_now(h: number, ms: number): number;
  /** Key and value at the scratch. Returns the bytes staged; sequence in out 0..2. */
  varve_set(h: number, keyBytes: number, valueBytes: number): number;
  varve_delete(h: number, keyBytes: number): number;
  varve_delete_range(h: number, startBytes: number, endBytes: number): number;
  /** A conflict names its key in out 0..2 and the sequence found in out 2..4. */
  varve_batch(h: number, bytes: number, snapshot: number): number;
  /** 1 and pointer, length in out 0..2; 0 where there is no such key. */
  varve_get(h: number, keyBytes: number): number;
  varve_has(h: number, keyBytes: number): number;
  /** As `varve_get`, with the sequence in out 2..4 and the expiry, as f64 bits, in out 4..6. */
  varve_get_entry(h: number, keyBytes: number, snapshot: number): number;
  /** Logs all that is staged; sequence in out 0..2. */
  varve_commit(h: number, durability: number): number;
  varve_pending(h: number): number;
  /** 1 while something was handed to the storage that a power cut could still take. */
  varve_unsynced(h: number): number;
  /** Writes since the log was last sealed. */
  varve_unsealed(h: number): number;
  varve_acknowledged(h: number): number;
  /** 1 while writers should wait for a flush or compaction. */
  varve_stalled(h: number): number;
  varve_scan_open(h: number, bytes: number): number;
  /** 1 more, 0 finished; the batch at out 0..2; out 2 is 1 when all key bytes are ASCII. */
  varve_scan_next(h: number, cursor: number, batchBytes: number): number;
  varve_scan_close(h: number, cursor: number): number;
  /** Its number, above 0; its sequence in out 0..2. */
  varve_snapshot_open(h: number): number;
  varve_snapshot_close(h: number, snapshot: number): number;
  /** Lets go of the snapshots and scans of a client, and of what is kept so that it can ask again. */
  varve_forget_client(h: number, clientLow: number, clientHigh: number, mayReturn: number): number;
  /** Gives a store the snapshots and scans of one that was open on the same device before. */
  varve_adopt(h: number, former: number): number;
  /** Answers a frame; the response at out 0..2. */
  varve_frame(h: number, bytes: number): number;
}

/** What `open_store` gives: a number for the raw exports, and what recovery found. */
export interface OpenedStore {
  readonly handle: number;
  readonly state: 'new' | 'clean' | 'replayed' | 'torn';
  readonly records: number;
  readonly recordsDropped: number;
}

/** Numbers that `open_store` takes. */
export interface StoreSettings {
  memory_bytes: number;
  files_max: number;
  log: boolean;
  /** Bytes of flushed log segments kept for `changes`; negative for what suits the store. Default 0. */
  history_bytes?: number;
}

/** A flush or compaction that waits to be done. */
export interface JobTicket {
  readonly id: number;
  readonly kind: 'flush' | 'compaction';
  /** All that the job needs besides its input tables; goes to the compactor as it is. */
  readonly spec: Uint8Array;
  /** How large one output may get, in bytes. */
  readonly bytes_hint: number;
}

/** Steps of a job, as `CompactionJob.step` names them. */
export const JobStep = { working: 0, need: 1, write: 2, finished: 3, done: 4 } as const;

/** A job on the compactor's side: blocks in, blocks out. */
export interface CompactionJob {
  step(entries: number): number;
  /** After `need`: table, offset, length. */
  need(): Float64Array | number[];
  feed(bytes: Uint8Array): void;
  /** After `write`: the bytes, and where they belong. After `finished`: `output_offset` is the table's size. */
  output(): Uint8Array;
  output_table(): number;
  output_offset(): number;
  result(): Uint8Array;
  free(): void;
}

/** The control plane. */
export interface EngineControl {
  open_store(
    device: number,
    settings: StoreSettings,
    nowMs: number,
    entropyLow: number,
    entropyHigh: number,
    storeId: Uint8Array,
  ): OpenedStore;
  close_store(h: number): void;
  /** The sentence of the last error that a raw export answered with. */
  last_error(h: number): string;
  /** The numbers that `statsOf` names. */
  stats(h: number): Float64Array;
  sync(h: number): void;
  seal(h: number): void;
  fold_log(h: number): void;
  /** Gives back files that only wait for the next edit. */
  release(h: number): void;
  /** Freezes the active memtable, so that the next job flushes it. */
  freeze(h: number): void;
  take_job(h: number): JobTicket | undefined;
  lend(h: number, table: number, bytesHint: number): number;
  reclaim(h: number, table: number, size: number): void;
  abandon(h: number, table: number): void;
  read_input(h: number, table: number, offset: number, length: number): Uint8Array;
  finish_job(h: number, id: number, result: Uint8Array): void;
  fail_job(h: number, id: number): void;
  run_slice(h: number, entries: number): boolean;
  ask_for_compaction(h: number): void;
  shrink(h: number): void;
  /** Bytes that the quota leaves. */
  set_room(h: number, bytes: number): void;
  wanted_slots(h: number): number;
  slots_added(h: number): void;
  readonly CompactionJob: new (spec: Uint8Array) => CompactionJob;
}

/** One engine instance: one for each realm, however many stores it has open. */
export interface Engine {
  readonly exports: EngineExports;
  readonly control: EngineControl;
  /** Views of its memory, and the scratch that all its stores share. */
  readonly memory: EngineMemory;
  /** The compiled module, to be posted to the compactor rather than compiled twice. */
  readonly module: WebAssembly.Module;
}
