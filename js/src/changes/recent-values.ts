/**
 * The bytes of values read most recently, by the text of their keys, and the reads that are under way.
 *
 * Invariant: there are at most so many entries and bytes; the one that was used longest ago goes first. What is dropped while it is being
 * read is not kept when it arrives.
 */

/** A value as it was read; without bytes there was none. */
export interface Kept {
  readonly bytes: Uint8Array | undefined;
  /** How long it may be answered, in milliseconds since 1970. */
  readonly until: number;
}

/** A read that is under way. */
export interface Ticket {
  readonly id: string;
  isStale: boolean;
}

/** What an entry counts besides its key and value, in bytes. */
const ENTRY_BYTES = 64;

/** A bounded map with the order of use. */
export class RecentValues {
  readonly #entries_max: number;
  readonly #bytes_max: number;
  /** The one used longest ago is the first. */
  readonly #kept = new Map<string, Kept>();
  readonly #awaited = new Set<Ticket>();
  #bytes = 0;

  constructor(entries_max: number, bytes_max: number) {
    this.#entries_max = entries_max;
    this.#bytes_max = bytes_max;
  }

  get(id: string, now_ms: number): Kept | undefined {
    const kept = this.#kept.get(id);
    if (kept === undefined) return undefined;
    this.#remove(id, kept);
    if (now_ms >= kept.until) return undefined;
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

  /** Keeps what was read. */
  keep({ id, isStale }: Ticket, { bytes, until }: Kept): void {
    if (isStale) return;
    this.#drop(id);
    this.#add(id, { bytes, until });
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= this.#entries_max && this.#bytes <= this.#bytes_max) break;
      this.#remove(oldest, kept);
    }
  }

  drop(id: string): void {
    this.#drop(id);
    for (const ticket of this.#awaited) ticket.isStale ||= ticket.id === id;
  }

  /** Drops everything from `start` up to before `end`. */
  dropRange(start: string, end: string | undefined): void {
    const holds = (id: string): boolean => id >= start && (end === undefined || id < end);
    for (const [id, kept] of this.#kept) if (holds(id)) this.#remove(id, kept);
    for (const ticket of this.#awaited) ticket.isStale ||= holds(ticket.id);
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
