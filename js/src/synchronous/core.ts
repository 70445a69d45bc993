/**
 * The part of a synchronous store that all its views share: the engine, the turn's log, and the time.
 *
 * Invariant: no operation reaches the engine once the store is closed, or before the engine has got the time of the turn.
 */

import type { Formats } from '../codec/formats.ts';
import { ByteSink } from '../codec/sink.ts';
import type { ValueFormat } from '../codec/values.ts';
import type { EngineHost } from '../engine/engine-host.ts';
import { codeNumber } from '../errors.ts';
import type { RawEntry } from '../portable/raw-store.ts';
import { EngineConflict } from '../protocol/conflict.ts';
import type { HalfOpen } from '../transaction/read-set.ts';
import type { Durability, Key, Receipt } from '../types.ts';
import type { EngineExports } from '../wasm/exports.ts';
import type { EngineFault } from '../wasm/fault.ts';
import type { EngineMemory } from '../wasm/memory.ts';
import type { SnapshotReads } from './reads.ts';
import { SyncScans } from './scans.ts';
import { isRaw, ScratchWriter, TAG_RAW } from './scratch-writer.ts';
import { Slab } from './slab.ts';
import { TurnLog } from './turn-log.ts';

/** The memory of a batch is kept for the next one up to this size. */
const SINK_BYTES_KEPT = 256 * 1024;
/** The tag byte of a stored string (codec/values.ts): it is decoded in place, everything else is copied first. */
const TAG_TEXT = 2;
/** The status of a batch with a condition that was not true. */
const CONFLICT = -codeNumber('VARVE_CONFLICT');

/** One open engine. */
export class SyncCore {
  readonly host: EngineHost;
  readonly exports: EngineExports;
  readonly memory: EngineMemory;
  readonly fault: EngineFault;
  readonly h: number;
  readonly writer: ScratchWriter;
  readonly log: TurnLog;
  /** Whether an exclusive transaction is open. */
  readonly exclusive = { isTaken: false };
  readonly #slab = new Slab();
  /** The memory of the last batch, for the next one. */
  #sink: ByteSink | undefined;
  /** Whether the engine has got the time in this turn. */
  #timed = false;
  readonly #endTime = (): void => {
    this.#timed = false;
  };

  constructor(host: EngineHost, durability: Durability | undefined) {
    const { exports, memory, fault, h } = host.store;
    this.host = host;
    this.exports = exports;
    this.memory = memory;
    this.fault = fault;
    this.h = h;
    this.writer = new ScratchWriter(memory);
    this.log = new TurnLog(host, durability);
  }

  /** Reads in these formats. */
  readsOf<K, V>(formats: Formats<K, V>): SnapshotReads<K, V> {
    const ensureOpen = (): void => this.ensureOpen();
    return {
      formats,
      scans: new SyncScans({ ...formats, store: this.host.store, slab: this.#slab, ensureOpen }),
      entry: (key, snapshot) => {
        if (!this.#finds(formats.keys.stored(key), snapshot)) return undefined;
        const sequence = this.memory.outU64(2);
        const ms = this.memory.outExpires[0] ?? 0;
        return { value: this.found(formats.values), sequence, expiresAt: ms === 0 ? undefined : new Date(ms) };
      },
      has: (key, snapshot) => this.#finds(formats.keys.stored(key), snapshot),
      at: (other) => this.readsOf(other),
    };
  }

  /** A batch's memory. */
  takeSink(): ByteSink {
    const sink = this.#sink ?? new ByteSink(1024);
    this.#sink = undefined;
    return sink;
  }

  /** Takes back the memory of a batch that was committed. */
  keepSink(sink: ByteSink): void {
    if (sink.bytes.length <= SINK_BYTES_KEPT) this.#sink = sink;
  }

  /** The bytes of an entry below the formats. */
  reserved(key: Uint8Array, snapshot: number): RawEntry | undefined {
    this.memory.put(key);
    const status = this.fault.guarded(() => this.exports.varve_get_entry(this.h, key.length, snapshot));
    if (this.host.store.check(status) === 0) return undefined;
    const sequence = this.memory.outU64(2);
    return { value: this.memory.takeOut(), sequence };
  }

  /** Applies a batch. Throws a conflict in the form in which the engine reports it. */
  commitBatch(items: Uint8Array, snapshot: number, durability: Durability | undefined): Receipt {
    this.ensureOpen();
    this.memory.put(items);
    const status = this.fault.guarded(() => this.exports.varve_batch(this.h, items.length, snapshot));
    if (status === CONFLICT) throw this.#conflict();
    return this.log.staged(status, durability);
  }

  /** Deletes a range of bytes: [start | end] in the scratch. */
  deleteRange({ start, end }: HalfOpen, durability: Durability | undefined): Receipt {
    const bytes = new Uint8Array(start.length + end.length);
    bytes.set(start);
    bytes.set(end, start.length);
    this.memory.put(bytes);
    const status = this.fault.guarded(() => this.exports.varve_delete_range(this.h, start.length, end.length));
    return this.log.staged(status, durability);
  }

  /** Takes a snapshot; returns its number. */
  openSnapshot(): number {
    this.ensureOpen();
    return this.host.store.check(this.fault.guarded(() => this.exports.varve_snapshot_open(this.h, 0)));
  }

  /** Releases a snapshot, unless the store is closed. */
  closeSnapshot(number: number): void {
    if (this.log.refusal === undefined) this.fault.guarded(() => this.exports.varve_snapshot_close(this.h, number));
  }

  /** Throws once the store is closed. */
  ensureOpen(): void {
    if (this.log.refusal !== undefined) throw this.log.refusal;
    if (!this.#timed) this.#giveTime();
  }

  /** Gives the engine the time, once in a turn before its first operation: entries expire between turns only. */
  #giveTime(): void {
    this.#timed = true;
    this.host.store.tick();
    queueMicrotask(this.#endTime);
  }

  /** The value whose pointer and length are in out cells 0 and 1. */
  found<V>(values: ValueFormat<V>): V {
    const memory = this.memory.fresh();
    const { u8, out } = memory;
    const start = out[0] as number;
    const end = start + (out[1] as number);
    const tag = u8[start];
    if (tag === TAG_RAW && isRaw(values)) return this.#slab.copy(memory, start + 1, end) as unknown as V;
    if (tag === TAG_TEXT) return values.read(u8, start, end);
    const copy = this.#slab.copy(memory, start, end);
    return values.read(copy, 0, copy.length);
  }

  /** Whether a key is there in a snapshot; its entry is then in the out cells. */
  #finds(stored: Key, snapshot: number): boolean {
    this.ensureOpen();
    const keyBytes = this.writer.key(stored);
    const status = this.fault.guarded(() => this.exports.varve_get_entry(this.h, keyBytes, snapshot));
    return this.host.store.check(status) !== 0;
  }

  /** The conflict whose key is in out cells 0 and 1 and whose sequence is in out cells 2 and 3. */
  #conflict(): EngineConflict {
    const found = this.memory.outU64(2);
    return new EngineConflict(this.memory.takeOut(), found);
  }
}
