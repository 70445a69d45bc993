/**
 * The answers that a client keeps while its lease runs (protocol/lease.ts), by ids: the text of a key, or of a range.
 *
 * Invariants:
 * - Something is returned from here only while the lease runs, and only if it equals what the leader would answer.
 * - A value that this client is writing is not here: it goes back when its write has succeeded. A read that began before an own write of its
 *   footprint is not kept. Nor is one that began under the leader before: it may be sent again, and then see the store before a write that
 *   the leader before did.
 * - The bytes are limited; the least recently used entry is dropped first.
 */

import { type Footprint, isIn, overlap, type TextRange } from '../protocol/footprint.ts';
import { LEASE_MS } from '../protocol/lease.ts';

/** A read, as it was answered. */
export interface Kept {
  /** The value that was read; undefined for an absent key. */
  readonly bytes: Uint8Array | undefined;
  /** The range that was read; undefined if it was a key. */
  readonly range?: TextRange | undefined;
}

/** A running read, or an own write that is under way. */
export interface Ticket {
  readonly id: string;
  readonly range: TextRange | undefined;
  isStale: boolean;
}

/** Bytes counted for an entry besides its id and its bytes. */
const ENTRY_BYTES = 200;
/** Each own write is compared with every range. */
const RANGES_MAX = 100;

/** A bounded map in the order of use, under a lease. */
export class KeptReads {
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #leaseMs: number;
  /** The least recently used entry is the first. */
  readonly #kept = new Map<string, Kept>();
  /** The ranges among them. */
  readonly #ranges = new Map<string, TextRange>();
  readonly #reading = new Tickets();
  readonly #writing = new Tickets();
  #bytes = 0;
  #usedAt = 0;
  #until = Number.NEGATIVE_INFINITY;

  /**
   * @param now The time of a monotonic clock, in milliseconds.
   * @param isAlone Whether no other client can ever write: then nothing needs a lease.
   */
  constructor(bytesMax: number, now: () => number, isAlone = false) {
    this.#bytesMax = bytesMax;
    this.#now = now;
    this.#leaseMs = isAlone ? Number.POSITIVE_INFINITY : LEASE_MS;
    if (isAlone) this.granted(0, false);
  }

  /** Whether nothing is here, or is about to be. */
  get isIdle(): boolean {
    return this.#kept.size === 0 && this.#reading.isEmpty && this.#writing.isEmpty;
  }

  /** The time of the last `get` that looked at something kept. */
  get usedAt(): number {
    return this.#usedAt;
  }

  /** Whether the lease was in its second half at the last `get`, so that it is time to renew it. */
  get isOld(): boolean {
    return this.#until - this.#usedAt < this.#leaseMs / 2;
  }

  get(id: string): Kept | undefined {
    const kept = this.#kept.get(id);
    if (kept === undefined) return undefined;
    this.#usedAt = this.#now();
    if (this.#usedAt >= this.#until) return undefined;
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    return kept;
  }

  /** Announces a read. */
  read(id: string, range?: TextRange): Ticket {
    return this.#reading.take(id, range);
  }

  /** Keeps the answer of a read that was granted. */
  keep({ id, isStale }: Ticket, kept: Kept): void {
    if (!isStale) this.#put(id, kept);
  }

  /** The read has ended, or failed. */
  leave(ticket: Ticket): void {
    this.#reading.leave(ticket);
  }

  /** This client writes a key. Returns a ticket if the new value is to be kept when the write has succeeded: if the old one was. */
  write(id: string, canKeep = true): Ticket | undefined {
    const isKept = canKeep && this.#kept.has(id);
    this.#reading.spoil(id);
    this.#drop(id);
    return isKept ? this.#writing.take(id) : undefined;
  }

  /** The write has ended. `kept`: its value, if it succeeded and its answer was granted. */
  written(ticket: Ticket, kept: Kept | undefined): void {
    this.#writing.leave(ticket);
    if (kept !== undefined && !ticket.isStale) this.#put(ticket.id, kept);
  }

  /** This client writes a range; without an end, to the end of the store. */
  writeRange(range: TextRange): void {
    this.#reading.spoilRange(range);
    this.#dropRange(range);
  }

  /** The answer to a request that was sent at that time was granted. */
  granted(sentAt: number, isNew: boolean): void {
    if (isNew) this.#clear();
    this.#until = Math.max(this.#until, sentAt + this.#leaseMs);
  }

  /** Other clients are about to write these. */
  revoked(footprint: Footprint): void {
    if (footprint.isEverything) this.#clear();
    for (const key of footprint.keys) this.#drop(key);
    for (const range of footprint.ranges) this.#dropRange(range);
  }

  /** The leader is gone, and the lease with it. */
  lost(): void {
    this.#clear();
    this.#reading.spoilAll();
    this.#until = Number.NEGATIVE_INFINITY;
  }

  #clear(): void {
    this.#kept.clear();
    this.#ranges.clear();
    this.#bytes = 0;
    this.#writing.spoilAll();
  }

  /** Drops a key, and the ranges that contain it. */
  #drop(id: string): void {
    this.#writing.spoil(id);
    this.#remove(id);
    for (const [ranged, range] of this.#ranges) if (isIn(id, range)) this.#remove(ranged);
  }

  #dropRange(range: TextRange): void {
    this.#writing.spoilRange(range);
    for (const [id, kept] of this.#kept) {
      if (kept.range === undefined ? isIn(id, range) : overlap(kept.range, range)) this.#remove(id);
    }
  }

  #put(id: string, kept: Kept): void {
    this.#remove(id);
    // One large entry must not displace all others.
    if (sizeOf(id, kept) > this.#bytesMax / 4) return;
    this.#kept.set(id, kept);
    this.#bytes += sizeOf(id, kept);
    if (kept.range !== undefined) this.#ranges.set(id, kept.range);
    if (this.#ranges.size > RANGES_MAX) this.#remove(this.#ranges.keys().next().value as string);
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#remove(oldest);
    }
  }

  #remove(id: string): void {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.delete(id);
    this.#ranges.delete(id);
    this.#bytes -= sizeOf(id, kept);
  }
}

/** The tickets that are not stale. */
class Tickets {
  readonly #ofKeys = new Map<string, { readonly ticket: Ticket; uses: number }>();
  readonly #ofRanges = new Set<Ticket>();

  get isEmpty(): boolean {
    return this.#ofKeys.size === 0 && this.#ofRanges.size === 0;
  }

  /** A ticket; reads of one key share it. */
  take(id: string, range?: TextRange): Ticket {
    const shared = range === undefined ? this.#ofKeys.get(id) : undefined;
    if (shared !== undefined) {
      shared.uses++;
      return shared.ticket;
    }
    const ticket = { id, range, isStale: false };
    if (range === undefined) this.#ofKeys.set(id, { ticket, uses: 1 });
    else this.#ofRanges.add(ticket);
    return ticket;
  }

  leave(ticket: Ticket): void {
    this.#ofRanges.delete(ticket);
    const shared = this.#ofKeys.get(ticket.id);
    if (shared?.ticket === ticket && --shared.uses === 0) this.#ofKeys.delete(ticket.id);
  }

  /** Makes the tickets of a key stale, and those of the ranges that contain it. */
  spoil(id: string): void {
    const shared = this.#ofKeys.get(id);
    if (shared !== undefined) this.#spoil(shared.ticket);
    for (const ticket of this.#ofRanges) if (isIn(id, ticket.range as TextRange)) this.#spoil(ticket);
  }

  spoilRange(range: TextRange): void {
    for (const [id, { ticket }] of this.#ofKeys) if (isIn(id, range)) this.#spoil(ticket);
    for (const ticket of this.#ofRanges) if (overlap(ticket.range as TextRange, range)) this.#spoil(ticket);
  }

  spoilAll(): void {
    this.spoilRange(['', undefined]);
  }

  #spoil(ticket: Ticket): void {
    ticket.isStale = true;
    this.#ofRanges.delete(ticket);
    if (ticket.range === undefined) this.#ofKeys.delete(ticket.id);
  }
}

function sizeOf(id: string, { bytes }: Kept): number {
  return ENTRY_BYTES + id.length + (bytes?.length ?? 0);
}
