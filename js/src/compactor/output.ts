/**
 * The output tables of a job: slots lent by the engine worker, written and flushed here.
 *
 * Invariant: a table is finished only when all its bytes are written and flushed. A short write is an error. In every case,
 * `closeAll` leaves no handle open, because the engine worker opens the slots again.
 */

import { VarveError } from '../errors.ts';
import type { OpenOutput, OutputSlot } from '../storage/compactor-port.ts';
import { SLOT_DATA_OFFSET, SlotError } from '../storage/device.ts';

/** Asks the engine worker for a slot for a table; resolves with its number. */
type Lend = (table: number) => Promise<number>;

/** Output tables in progress. */
export class CompactorOutputs {
  readonly #openSlot: OpenOutput;
  readonly #lend: Lend;
  readonly #open = new Map<number, OutputSlot>();

  constructor(openSlot: OpenOutput, lend: Lend) {
    this.#openSlot = openSlot;
    this.#lend = lend;
  }

  /** Writes bytes at an offset of a table. The first write opens its slot. */
  async write(table: number, offset: number, bytes: Uint8Array): Promise<void> {
    let slot = this.#open.get(table);
    if (slot === undefined) {
      slot = await this.#openSlot(await this.#lend(table));
      this.#open.set(table, slot);
    }
    let written: number;
    try {
      written = slot.write(bytes, SLOT_DATA_OFFSET + offset);
    } catch (error) {
      throw failure(error);
    }
    if (written !== bytes.length) throw full();
  }

  /** Flushes and closes a complete table. */
  finish(table: number): void {
    const slot = this.#open.get(table);
    if (slot === undefined) return;
    try {
      slot.flush();
      slot.close();
    } catch (error) {
      throw failure(error);
    }
    this.#open.delete(table);
  }

  /** Closes the slots that a failed job left open. Never throws: the others would stay open, and nobody would hear of the job's end. */
  closeAll(): void {
    for (const slot of this.#open.values()) {
      try {
        slot.close();
      } catch {
        // Nobody uses its bytes.
      }
    }
    this.#open.clear();
  }
}

function failure(error: unknown): VarveError {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof SlotError && error.kind === 'full') return full(error);
  return new VarveError('VARVE_IO', `The storage failed: ${message}`, { cause: error });
}

function full(cause?: unknown): VarveError {
  return new VarveError('VARVE_STORAGE_FULL', 'There was no room for the output of a compaction.', { cause });
}
