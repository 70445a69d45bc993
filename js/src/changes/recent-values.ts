/**
 * The bytes of the most recently read values, by the text of their keys, and the running reads.
 *
 * Invariant: the numbers of entries and bytes are limited; the least recently used entry is dropped first. A value that is dropped
 * while it is being read is not kept when it arrives.
 */

/** A value as it was read; without bytes the key was absent. */
export interface Kept {
  readonly bytes: Uint8Array | undefined;
  /** Until when it may be returned, in milliseconds since 1970. */
  readonly until: number;
}

/** A running read. */
export interface Ticket {
  readonly id: string;
  isStale: boolean;
}

/** Bytes counted for an entry besides its key and value. */
const ENTRY_BYTES = 64;

/** A bounded map in the order of use. */
export class RecentValues {
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  /** The least recently used entry is the first. */
  readonly #kept = new Map<string, Kept>();
  readonly #awaited = new Set<Ticket>();
  #bytes = 0;

  constructor(entriesMax: number, bytesMax: number) {
    this.#entriesMax = entriesMax;
    this.#bytesMax = bytesMax;
  }

  get(id: string, nowMs: number): Kept | undefined {
    const kept = this.#kept.get(id);
    if (kept === undefined) return undefined;
    this.#remove(id, kept);
    if (nowMs >= kept.until) return undefined;
    this.#add(id, kept);
    return kept;
  }

  /** Announces a read. */
  await(id: string): Ticket {
    const ticket = { id, isStale: false };
    this.#awaited.add(ticket);
    return ticket;
  }

  /** The read has ended, or failed. */
  leave(ticket: Ticket): void {
    this.#awaited.delete(ticket);
  }

  /** Keeps a value that was read. */
  keep({ id, isStale }: Ticket, { bytes, until }: Kept): void {
    if (isStale) return;
    this.#drop(id);
    this.#add(id, { bytes, until });
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= this.#entriesMax && this.#bytes <= this.#bytesMax) break;
      this.#remove(oldest, kept);
    }
  }

  drop(id: string): void {
    this.#drop(id);
    for (const ticket of this.#awaited) ticket.isStale ||= ticket.id === id;
  }

  /** Drops everything from `start` up to before `end`. */
  dropRange(start: string, end: string | undefined): void {
    const isIn = (id: string): boolean => id >= start && (end === undefined || id < end);
    for (const [id, kept] of this.#kept) if (isIn(id)) this.#remove(id, kept);
    for (const ticket of this.#awaited) ticket.isStale ||= isIn(ticket.id);
  }

  #drop(id: string): void {
    const kept = this.#kept.get(id);
    if (kept !== undefined) this.#remove(id, kept);
  }

  #add(id: string, kept: Kept): void {
    this.#kept.set(id, kept);
    this.#bytes += sizeOf(id, kept);
  }

  #remove(id: string, kept: Kept): void {
    this.#kept.delete(id);
    this.#bytes -= sizeOf(id, kept);
  }
}

function sizeOf(id: string, { bytes }: Kept): number {
  return ENTRY_BYTES + id.length + (bytes?.length ?? 0);
}
