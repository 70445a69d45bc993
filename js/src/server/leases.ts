/**
 * The leases that a leader has given to its clients: which client may keep what, and until when. The rules are in protocol/lease.ts.
 *
 *     admit    a frame came: it runs, or it is held until its writes touch no lease
 *     begin    it runs now: what it reads is noted
 *     grant    its answer leaves: the client may keep what it has read
 *
 * Invariants:
 * - All that a client may keep is in the footprint of its lease, from before it was read until it was revoked.
 * - A held frame delays the later messages of its client, and nobody else.
 * - While a frame is held, nobody gets a lease on what it writes. So it is held once, for as long as the longest of the leases.
 * - A client that is alone keeps what it likes: nothing of its frames is looked at. The first write of another client revokes it all.
 */

import { Footprint, type PlainFootprint } from '../protocol/footprint.ts';
import { LEASE_MARGIN_MS, LEASE_MS, ResponseFlag } from '../protocol/lease.ts';

/** Asks a client to drop what it keeps of a footprint. */
interface Revoke {
  readonly type: 'revoke';
  readonly revocation: number;
  readonly footprint: PlainFootprint;
}

/** A client as its leases see it. */
export interface Lessee {
  send(message: Revoke): void;
}

/** The needs of leases, which their server fulfils. */
export interface Lessor<C, T> {
  /** The time of a monotonic clock, in milliseconds. */
  now(): number;
  /** Calls `wake` of the leases at that time, and no longer at the time that was given before. */
  wakeAt(time: number): void;
  /** Whether there is one client only. */
  isAlone(): boolean;
  /** The messages of a client that were held, in their order: they are to be admitted again, before later ones of that client. */
  onFree(from: C, items: readonly T[]): void;
}

/** A revocation that its client has not confirmed. */
interface Revocation {
  /** All that the client drops: also the ranges that have a revoked key, as a whole. */
  readonly footprint: Footprint;
  /** Then the lease has ended. */
  readonly until: number;
}

/** The lease of a client. */
interface Lease {
  /** The keys and ranges that the client may keep. */
  readonly kept: Footprint;
  readonly revoked: Map<number, Revocation>;
  /** Rises when something is revoked. A frame that ran before gets no grant. */
  epoch: number;
  until: number;
}

/** A frame that waits, with the messages behind it. */
interface Held<T> {
  readonly writes: Footprint;
  readonly waits: Set<Revocation>;
  readonly items: T[];
  isFree: boolean;
}

/** A frame that runs or ran. */
export interface Grant {
  readonly lease: Lease;
  readonly epoch: number;
}

/** Leases of clients `C`, whose messages are `T`. */
export class Leases<C extends Lessee, T> {
  readonly #lessor: Lessor<C, T>;
  readonly #leases = new Map<C, Lease>();
  readonly #held = new Map<C, Held<T>>();
  #revocations = 0;
  /** The clients that may have leases of the former leader; undefined while nobody knows which. */
  #former: Set<number> | undefined;
  /** The clients that keep nothing any more, while nobody knows which may. */
  readonly #closedClients = new Set<number>();
  /** When the leases of the former leader have ended. */
  #formerUntil: number;

  /** Leases of a leader that just began to lead: those of the former leader may go on for a while. */
  constructor(lessor: Lessor<C, T>) {
    this.#lessor = lessor;
    this.#formerUntil = lessor.now() + LEASE_MS + LEASE_MARGIN_MS;
  }

  /** The clients that live and may have leases of the former leader. Without this call, all are assumed to have one. */
  know(clients: readonly number[]): void {
    this.#former = new Set(clients.filter((client) => !this.#closedClients.has(client)));
    this.wake();
  }

  /** A client has dropped what it kept by leases of the former leader. */
  clientClosed(client: number): void {
    if (this.#former === undefined) this.#closedClients.add(client);
    else if (this.#former.delete(client)) this.wake();
  }

  /** Whether a message may be handled now. Otherwise it is held. `writes`: what the frame writes; without it, the message is no frame. */
  admit(from: C, item: T, writes?: () => Footprint): boolean {
    const held = this.#held.get(from);
    if (held?.isFree === false) {
      held.items.push(item);
      return false;
    }
    if (writes === undefined) return true;
    this.#held.delete(from);
    const waitsForFormer = this.#waitsForFormer();
    if (!waitsForFormer && !this.#othersKeep(from)) return true;
    const footprint = writes();
    if (footprint.isEmpty) return true;
    const waits = this.#revoke(from, footprint);
    if (waits.size === 0 && !waitsForFormer) return true;
    this.#held.set(from, { writes: footprint, waits, items: [item], isFree: false });
    this.#schedule(waitsForFormer);
    return false;
  }

  /** A frame that wants a lease begins to run. Returns what `grant` needs; undefined if there is nothing to grant. */
  begin(from: C, reads: () => Footprint): Grant | undefined {
    let lease = this.#leases.get(from);
    if (lease === undefined) {
      lease = { kept: new Footprint(), revoked: new Map(), epoch: 0, until: Number.NEGATIVE_INFINITY };
      this.#leases.set(from, lease);
    }
    if (this.#lessor.isAlone()) lease.kept.addEverything();
    else if (this.#held.size > 0 || !lease.kept.isEverything) {
      const footprint = reads();
      for (const [client, { writes }] of this.#held) if (client !== from && writes.touches(footprint)) return undefined;
      lease.kept.addAll(footprint);
    }
    return { lease, epoch: lease.epoch };
  }

  /** The answer to a frame leaves now. Returns its `ResponseFlag`s. */
  grant(from: C, grant: Grant | undefined): number {
    if (grant === undefined || this.#leases.get(from) !== grant.lease || grant.epoch !== grant.lease.epoch) return 0;
    const isNew = grant.lease.until <= this.#lessor.now();
    this.#extend(grant.lease);
    return isNew ? ResponseFlag.granted | ResponseFlag.isNew : ResponseFlag.granted;
  }

  /** A client asks for more time. Returns whether its lease goes on. */
  renew(from: C): boolean {
    const lease = this.#leases.get(from);
    if (lease === undefined || lease.until <= this.#lessor.now()) return false;
    this.#extend(lease);
    return true;
  }

  /** A client has dropped what a revocation named. */
  confirm(from: C, revocation: number): void {
    const revoked = this.#leases.get(from)?.revoked;
    const found = revoked?.get(revocation);
    if (found === undefined) return;
    revoked?.delete(revocation);
    this.#end(found);
  }

  /** A client is gone, or begins anew: it keeps nothing, and waits for nothing. */
  leave(from: C): void {
    const lease = this.#leases.get(from);
    this.#leases.delete(from);
    this.#held.delete(from);
    for (const revocation of lease?.revoked.values() ?? []) this.#end(revocation);
  }

  /** Some time has passed, or something that frames waited for has happened. */
  wake(): void {
    const now = this.#lessor.now();
    for (const { revoked } of this.#leases.values()) {
      for (const [number, revocation] of revoked) {
        if (revocation.until > now) continue;
        revoked.delete(number);
        for (const { waits } of this.#held.values()) waits.delete(revocation);
      }
    }
    const waitsForFormer = this.#waitsForFormer();
    if (!waitsForFormer) {
      for (const [from, held] of this.#held) {
        if (held.isFree || held.waits.size > 0) continue;
        held.isFree = true;
        this.#lessor.onFree(from, held.items.splice(0));
      }
    }
    this.#schedule(waitsForFormer);
  }

  /** Revokes what other clients may keep of a footprint. Returns the revocations to wait for. */
  #revoke(from: C, writes: Footprint): Set<Revocation> {
    const now = this.#lessor.now();
    const waits = new Set<Revocation>();
    for (const [client, lease] of this.#leases) {
      if (client === from) continue;
      for (const earlier of lease.revoked.values()) if (earlier.footprint.touches(writes)) waits.add(earlier);
      if (!lease.kept.touches(writes)) continue;
      lease.epoch++;
      // After everything was removed, it is noted what this client may keep.
      const footprint = lease.kept.remove(writes);
      if (lease.until <= now) continue;
      const revocation = { footprint, until: lease.until };
      lease.revoked.set(++this.#revocations, revocation);
      waits.add(revocation);
      const dropped = (footprint.isEverything ? footprint : writes).plain();
      client.send({ type: 'revoke', revocation: this.#revocations, footprint: dropped });
    }
    return waits;
  }

  #end(revocation: Revocation): void {
    for (const { waits } of this.#held.values()) waits.delete(revocation);
    this.wake();
  }

  #extend(lease: Lease): void {
    lease.until = this.#lessor.now() + LEASE_MS + LEASE_MARGIN_MS;
  }

  #othersKeep(from: C): boolean {
    for (const [client, { kept, revoked }] of this.#leases) {
      if (client !== from && !(kept.isEmpty && revoked.size === 0)) return true;
    }
    return false;
  }

  #waitsForFormer(): boolean {
    return this.#former?.size !== 0 && this.#lessor.now() < this.#formerUntil;
  }

  /**
   * Asks to be woken when the first lease ends that a frame waits for. Whether that is one of the former leader's is not looked up again:
   * the clock goes on, and a timer that fires a moment early would be the last one.
   */
  #schedule(waitsForFormer: boolean): void {
    let first = Number.POSITIVE_INFINITY;
    for (const { waits, isFree } of this.#held.values()) {
      for (const { until } of waits) first = Math.min(first, until);
      if (!isFree && waitsForFormer) first = Math.min(first, this.#formerUntil);
    }
    if (first < Number.POSITIVE_INFINITY) this.#lessor.wakeAt(first);
  }
}
