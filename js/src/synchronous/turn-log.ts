/**
 * When the writes of a turn are logged, and what happens to buffered writes if logging fails.
 *
 * A staged write returns as `buffered`. It is logged with all others at the end of the turn, at 64 KiB, or by `commit`;
 * `strict` writes are logged and flushed before they return.
 *
 * Invariant: the writes that a turn staged are logged in order. The engine reserves the space for that before it stages a write: so
 * a full storage refuses a write at the call, and never loses a write that has returned. If logging fails for another reason, the
 * store is poisoned: writes that returned `buffered` are lost, and every later call reports it.
 */

import type { EngineHost } from '../engine/engine-host.ts';
import { closedError, VarveError } from '../errors.ts';
import { levelNumber, levelOf } from '../protocol/frame.ts';
import type { Durability, Receipt } from '../types.ts';
import type { EngineExports } from '../wasm/exports.ts';
import type { EngineFault } from '../wasm/fault.ts';
import type { EngineMemory } from '../wasm/memory.ts';

/** Staged bytes that are logged without waiting for the end of the turn. */
const STAGED_BYTES_MAX = 64 * 1024;

/** Logs what a synchronous store stages. */
export class TurnLog {
  /** The error that every call of the store throws from now on: the store is closed or poisoned, or its engine failed. */
  refusal: VarveError | undefined;
  readonly #host: EngineHost;
  readonly #exports: EngineExports;
  readonly #memory: EngineMemory;
  readonly #fault: EngineFault;
  readonly #h: number;
  readonly #level: Durability | 'buffered';
  /** The durability level at which buffered writes are logged. */
  readonly #logLevel: 'relaxed' | 'strict';
  readonly #endTurn = (): void => this.#endOfTurn();
  readonly #unwatch: () => void;
  /** The newest write that returned as buffered and is not known to be logged; 0 when there is none. */
  #buffered = 0;
  #scheduled = false;
  /** A write of this turn was refused because there was no space. */
  #isFull = false;

  /** `durability` is the default level of writes; undefined and `relaxed` mean that they are buffered. */
  constructor(host: EngineHost, durability: Durability | undefined) {
    this.#host = host;
    this.#exports = host.store.exports;
    this.#memory = host.store.memory;
    this.#fault = host.store.fault;
    this.#h = host.store.h;
    this.#logLevel = host.gate === undefined ? 'relaxed' : 'strict';
    this.#level = durability === undefined || durability === 'relaxed' ? 'buffered' : durability;
    this.#unwatch = host.onEnd((cause) => {
      this.refusal = cause;
    });
  }

  /** The receipt of a staged write; `status` is the number of bytes staged, or the number of an error. */
  staged(status: number, durability: Durability | undefined): Receipt {
    this.#memory.trim();
    if (status < 0) throw this.#refused(this.#host.store.error(status));
    const level = durability ?? this.#level;
    if (level === 'buffered' && status < STAGED_BYTES_MAX) {
      this.#buffered = this.#memory.outSequence();
      this.#schedule();
      return { sequence: this.#buffered, durability: 'buffered' };
    }
    const asked = level === 'buffered' ? this.#logLevel : level;
    const reached = this.#commit(asked);
    if (reached < 0) throw this.#refused(this.#host.store.error(reached));
    return this.#receipt(reached, asked);
  }

  /** Logs everything staged so far; the default level is the store's own. If it throws, the error is about all of these writes. */
  commit(durability: Durability = this.#level === 'buffered' ? this.#logLevel : this.#level): Receipt {
    const reached = this.#commit(durability);
    if (reached >= 0) return this.#receipt(reached, durability);
    const cause = this.#host.store.error(reached);
    this.#buffered = 0;
    throw this.refusal ?? cause;
  }

  /** Refuses every later call; if the store failed before, with the error of that failure. */
  close(): void {
    this.#unwatch();
    if (this.refusal?.code === 'VARVE_POISONED' || this.refusal?.code === 'VARVE_INTERNAL') return;
    this.refusal = closedError();
  }

  /** The level reached, or the status of an error. */
  #commit(durability: Durability): number {
    try {
      return this.#exports.varve_commit(this.#h, levelNumber(durability));
    } catch (error) {
      throw this.#fault.of(error);
    }
  }

  #receipt(reached: number, durability: Durability): Receipt {
    this.#buffered = 0;
    this.#schedule();
    return { sequence: this.#memory.outSequence(), durability: levelOf(reached) ?? durability };
  }

  /** Logs the writes that nobody waits for. If that fails, it poisons the store and throws. */
  #log(): void {
    const status = this.#fault.guarded(() => this.#exports.varve_commit(this.#h, levelNumber(this.#logLevel)));
    if (status >= 0) {
      this.#buffered = 0;
      return;
    }
    const cause = this.#host.store.error(status);
    if (this.refusal !== undefined) throw this.refusal;
    this.#poison(cause);
    throw cause;
  }

  /** A write was refused. Earlier writes that had returned as buffered may be lost with it: only this error reports them. */
  #refused(cause: VarveError): VarveError {
    // The store failed in this same call.
    if (this.refusal !== undefined) return this.refusal;
    if (cause.code === 'VARVE_STORAGE_FULL') {
      this.#isFull = true;
      this.#schedule();
    }
    if (this.#buffered !== 0 && this.#host.stats().sequence < this.#buffered) this.#poison(cause);
    return cause;
  }

  #poison(cause: VarveError): void {
    this.refusal = new VarveError(
      'VARVE_POISONED',
      `Writes that had returned as buffered could not be logged and are lost (${cause.message}) Close the store and open it again.`,
      { cause },
    );
    this.#host.gate?.fail(this.refusal);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    // First the gate: if it cannot be closed, the next write tries again.
    this.#host.gate?.hold();
    this.#scheduled = true;
    queueMicrotask(this.#endTurn);
  }

  #endOfTurn(): void {
    this.#scheduled = false;
    if (this.refusal !== undefined) return;
    try {
      if (this.#level === 'buffered' && this.#isPending()) this.#log();
      // Jobs free space between turns.
      if (this.#isFull) this.#host.upkeep.wantRoom();
      this.#isFull = false;
      this.#host.upkeep.afterTurn();
    } catch {
      // No caller can catch an error at the end of a turn: every later call reports it.
    }
  }

  #isPending(): boolean {
    return this.#fault.guarded(() => this.#exports.varve_pending(this.#h)) > 0;
  }
}
