/**
 * The output tables of a job: slots lent by the engine worker, written and flushed here.
 *
 * Invariant: a table counts as finished only when every byte of it was written, in full counts, and flushed. Whatever
 * happens, `closeAll` leaves no handle open, because the engine worker opens the slots again.
 */

import { VarveError } from '../errors.ts';
import { SLOT_DATA_OFFSET } from '../storage/device.ts';
import { slotError } from '../storage/opfs.ts';
import { openSlot } from '../storage/opfs-directory.ts';

/** How long a lent slot is waited for: the engine worker closes it just before. */
const OPEN_MS = 5000;

/** Asks the engine worker for a slot for a table; resolves with its number. */
export type Lend = (table: number) => Promise<number>;

/** Output tables in progress. */
export class CompactorOutputs {
  readonly #directory: FileSystemDirectoryHandle;
  readonly #lend: Lend;
  readonly #open = new Map<number, FileSystemSyncAccessHandle>();

  constructor(directory: FileSystemDirectoryHandle, lend: Lend) {
    this.#directory = directory;
    this.#lend = lend;
  }

  /** Writes bytes at an offset of a table, opening its slot at the first. */
  async write(table: number, offset: number, bytes: Uint8Array): Promise<void> {
    let handle = this.#open.get(table);
    if (handle === undefined) {
      const slot = await this.#lend(table);
      handle = await openSlot(this.#directory, slot, { create: false, wait: OPEN_MS });
      this.#open.set(table, handle);
    }
    let written: number;
    try {
      written = handle.write(bytes, { at: SLOT_DATA_OFFSET + offset });
    } catch (error) {
      throw failure(error);
    }
    if (written !== bytes.length) throw full();
  }

  /** Flushes and closes a complete table. */
  finish(table: number): void {
    const handle = this.#open.get(table);
    if (handle === undefined) return;
    try {
      handle.flush();
    } catch (error) {
      throw failure(error);
    }
    handle.close();
    this.#open.delete(table);
  }

  /** Closes what a failed job left open. */
  closeAll(): void {
    for (const handle of this.#open.values()) handle.close();
    this.#open.clear();
  }
}

function failure(error: unknown): VarveError {
  const { kind, message } = slotError(error);
  return kind === 'full' ? full(error) : new VarveError('VARVE_IO', `The storage failed: ${message}`, { cause: error });
}

function full(cause?: unknown): VarveError {
  return new VarveError('VARVE_STORAGE_FULL', 'There was no room for the output of a compaction.', { cause });
}
