/**
 * Slots in the SQL storage of a Durable Object.
 *
 * The writes of a turn are kept in memory and go into the table at the end of the turn, each chunk as one row. The platform
 * commits all rows that are written without waiting for I/O in between as one transaction, and holds back the object's output
 * until that is durable (its output gate). So a flush has nothing to do: a whole turn is durable before anybody can know of it.
 *
 *     first write   `touch`: the gate closes
 *     more writes   in memory; from 4 MiB on, rows ahead of time (the same transaction)
 *     end of turn   every chunk that was written: one row each
 *
 * Invariant: if rows cannot be written, the object is ended (`onFailure`) before it sends anything that depends on them. Growth
 * by zeros takes no rows; after a restart a slot ends with the last written bytes.
 */

import { type ManagedDevice, type OutputGate, SlotError } from '../storage/device.ts';
import { Chunk } from './chunk.ts';
import { CHUNK_BYTES, type ChunkTable } from './chunk-table.ts';
import { ReadAhead } from './read-ahead.ts';

/** Spare slots when the device opens: they cost nothing, and a synchronous turn cannot wait for more. */
const SPARE_SLOTS = 24;
/** Zeros of at least this length at the end of a slot are not stored. */
const ZEROS_MIN = 4096;
/** With more dirty bytes than this, rows are written before the end of the turn. */
const DIRTY_BYTES_MAX = 4 * 1024 * 1024;
/** Chunks whose bytes stay in memory, because the next write likely goes there. */
const CHUNKS_IN_MEMORY_MAX = 4;
/** A store that was there may grow by this much in any case: deletes need room, also if `maxBytes` was lowered below its size. */
const DELETE_BYTES = 256 * 1024;
/** Microtasks without a write after which a turn counts as over. A loop that awaits ready results writes once in every few of them. */
const PATIENCE = 8;

/** Options of a device. */
interface SqlDeviceOptions {
  /** The most bytes in all slots together. Beyond it, writes are cut short. */
  readonly maxBytes: () => number;
  /** Most slots. */
  readonly slotsMax: number;
  /** Called if rows could not be written: the output that is held back must not be sent. */
  readonly onFailure: (cause: unknown) => void;
  /** Called when the device was closed. */
  readonly onClose: () => void;
}

interface Slot {
  size: number;
  isOpen: boolean;
  readonly chunks: (Chunk | undefined)[];
}

/** A pool of slots in one table. */
export class SqlDevice implements ManagedDevice {
  readonly kind = 'durable-object';
  readonly lendable = false;
  readonly slotsMax: number;
  readonly gate: OutputGate = { hold: () => this.#closeGate(), fail: (cause) => this.#fail(cause) };
  readonly #table: ChunkTable;
  readonly #options: SqlDeviceOptions;
  readonly #slots: Slot[] = [];
  readonly #ahead = new ReadAhead();
  /** Chunks with bytes in memory; the last written one is at the end. */
  readonly #inMemory = new Set<Chunk>();
  #bytesUsed = 0;
  #bytesAtFirst = 0;
  #dirtyBytes = 0;
  #isGateClosed = false;
  #isClosed = false;
  #quiet = 0;
  readonly #tick = (): void => this.#endTurn();

  constructor(table: ChunkTable, options: SqlDeviceOptions) {
    this.#table = table;
    this.#options = options;
    this.slotsMax = options.slotsMax;
    for (const stored of table.list()) {
      const slot = this.#ensure(stored.slot);
      const chunk = new Chunk(table, stored);
      slot.chunks[stored.chunk] = chunk;
      slot.size = Math.max(slot.size, stored.chunk * CHUNK_BYTES + chunk.length);
    }
    for (const { size } of this.#slots) this.#bytesUsed += size;
    this.#bytesAtFirst = this.#bytesUsed;
    this.#add(SPARE_SLOTS);
  }

  count(): number {
    return this.#slots.length;
  }

  isOpen(slot: number): boolean {
    return !this.#isClosed && this.#slots[slot]?.isOpen === true;
  }

  size(slot: number): number {
    return this.#slot(slot).size;
  }

  read(slot: number, into: Uint8Array, at: number): number {
    const { chunks, size } = this.#slot(slot);
    const count = Math.max(0, Math.min(into.length, size - at));
    try {
      eachChunk(at, count, (number, from, start, length) => {
        const chunk = chunks[number];
        const part = into.subarray(start, start + length);
        if (chunk === undefined) part.fill(0);
        else this.#ahead.read(chunk, from, part);
      });
    } catch (cause) {
      throw new SlotError('io', 'Rows of the store could not be read.', { cause });
    }
    return count;
  }

  write(slot: number, bytes: Uint8Array, at: number): number {
    const target = this.#slot(slot);
    const grownBy = Math.max(0, at + bytes.length - target.size);
    // Bytes that are there are always overwritten.
    const short = Math.min(grownBy, Math.max(0, this.#bytesUsed + grownBy - this.#bytesMax()));
    const count = Math.max(0, bytes.length - short);
    if (count === 0) return 0;
    const isGrowth = at >= target.size && count >= ZEROS_MIN && isZero(bytes);
    if (!isGrowth) this.#put(slot, target, bytes.subarray(0, count), at);
    this.#resize(target, Math.max(target.size, at + count));
    return count;
  }

  /** Does nothing: see the top of this file. */
  flush(slot: number): void {
    this.#slot(slot);
  }

  truncate(slot: number, bytes: number): void {
    const target = this.#slot(slot);
    if (bytes > target.size && this.#bytesUsed + bytes - target.size > this.#bytesMax()) {
      throw new SlotError('full', 'The store has its maximum size.');
    }
    if (bytes < target.size) this.#cut(slot, target, bytes);
    this.#resize(target, bytes);
  }

  async grow(slots: number): Promise<number> {
    return this.#isClosed ? 0 : this.#add(slots);
  }

  release(slot: number): void {
    this.#slot(slot).isOpen = false;
  }

  async retake(slot: number): Promise<void> {
    const found = this.#slots[slot];
    if (found === undefined || this.#isClosed) throw new SlotError('closed', `There is no slot ${slot}.`);
    found.isOpen = true;
  }

  async freeBytes(): Promise<number> {
    return this.#bytesMax() - this.#bytesUsed;
  }

  async closeAll(): Promise<void> {
    if (this.#isClosed) return;
    try {
      this.#commit();
    } catch (cause) {
      // Some rows of the turn may be written already, and messages after its writes are held back: none of that may get out.
      this.#fail(cause);
      throw cause;
    }
    this.abort();
  }

  /** Closes the device without writing anything: its object no longer exists, and may have a successor. */
  abort(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#inMemory.clear();
    this.#options.onClose();
  }

  #put(number: number, slot: Slot, bytes: Uint8Array, at: number): void {
    this.#closeGate();
    try {
      eachChunk(at, bytes.length, (place, from, start, length) => {
        const known = slot.chunks[place];
        const chunk = known ?? Chunk.empty(this.#table, number, place);
        slot.chunks[place] = chunk;
        chunk.write(from, bytes.subarray(start, start + length));
        this.#ahead.drop(chunk);
        this.#inMemory.delete(chunk);
        this.#inMemory.add(chunk);
        this.#dirtyBytes += length;
        if (this.#dirtyBytes > DIRTY_BYTES_MAX) this.#commit();
      });
    } catch (cause) {
      throw new SlotError('io', 'Rows of the store could not be read or written.', { cause });
    }
  }

  #cut(number: number, slot: Slot, bytes: number): void {
    this.#closeGate();
    const kept = Math.ceil(bytes / CHUNK_BYTES);
    try {
      if (slot.chunks.length > kept) this.#table.remove(number, kept);
      for (const chunk of slot.chunks.splice(kept)) this.#drop(chunk);
      const last = slot.chunks[kept - 1];
      last?.cut(bytes - (kept - 1) * CHUNK_BYTES);
      if (last?.isDirty) this.#inMemory.add(last);
      if (last !== undefined) this.#ahead.drop(last);
    } catch (cause) {
      throw new SlotError('io', 'Rows of the store could not be deleted.', { cause });
    }
  }

  #drop(chunk: Chunk | undefined): void {
    if (chunk === undefined) return;
    this.#inMemory.delete(chunk);
    this.#ahead.drop(chunk);
  }

  /** Closes the gate for this turn, if it is open. */
  #closeGate(): void {
    this.#quiet = 0;
    if (this.#isGateClosed || this.#isClosed) return;
    this.#table.touch();
    this.#isGateClosed = true;
    queueMicrotask(this.#tick);
  }

  /** Waits for a few microtasks without a write: for the platform, `for (...) await something` is also one turn. */
  #endTurn(): void {
    if (this.#quiet++ < PATIENCE) {
      queueMicrotask(this.#tick);
      return;
    }
    this.#isGateClosed = false;
    if (this.#isClosed) return;
    try {
      this.#commit();
    } catch (cause) {
      this.#fail(cause);
    }
  }

  #commit(): void {
    for (const chunk of this.#inMemory) chunk.commit();
    this.#dirtyBytes = 0;
    for (const chunk of this.#inMemory) {
      if (this.#inMemory.size <= CHUNKS_IN_MEMORY_MAX) break;
      chunk.release();
      this.#inMemory.delete(chunk);
    }
  }

  #fail(cause: unknown): void {
    this.abort();
    this.#options.onFailure(cause);
  }

  #bytesMax(): number {
    const least = this.#bytesAtFirst > 0 ? this.#bytesAtFirst + DELETE_BYTES : 0;
    return Math.max(least, this.#options.maxBytes());
  }

  #slot(slot: number): Slot {
    const found = this.#slots[slot];
    if (found === undefined || !found.isOpen || this.#isClosed) {
      throw new SlotError('closed', `Slot ${slot} is not open.`);
    }
    return found;
  }

  #ensure(slot: number): Slot {
    while (this.#slots.length <= slot) this.#slots.push({ size: 0, isOpen: true, chunks: [] });
    return this.#slots[slot] as Slot;
  }

  #add(slots: number): number {
    const added = Math.max(0, Math.min(slots, this.slotsMax - this.#slots.length));
    if (added > 0) this.#ensure(this.#slots.length + added - 1);
    return added;
  }

  #resize(slot: Slot, size: number): void {
    this.#bytesUsed += size - slot.size;
    slot.size = size;
  }
}

/** Calls `visit` for each chunk in `length` bytes from `at` on: its number, the place in it, the place in the bytes, and the length. */
function eachChunk(
  at: number,
  length: number,
  visit: (chunk: number, from: number, start: number, length: number) => void,
): void {
  for (let start = 0; start < length; ) {
    const from = (at + start) % CHUNK_BYTES;
    const part = Math.min(CHUNK_BYTES - from, length - start);
    visit(Math.floor((at + start) / CHUNK_BYTES), from, start, part);
    start += part;
  }
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}
