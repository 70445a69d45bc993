/**
 * The numbers that a client gives to itself, its scans and its snapshots. The client chooses them itself, so that it can keep them
 * when another leader has opened the store.
 *
 * Invariant: a number is not given again while its scan or snapshot is open.
 */

import { invalid } from '../errors.ts';

/** Frames give a snapshot's number 16 bits. */
const SNAPSHOTS_MAX = 0xffff;

/** A client: 42 random bits, never 0. */
export function randomClient(): number {
  const [low = 0, high = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high & 0x3ff) * 0x1_0000_0000 + low || 1;
}

/** A scan or snapshot that a client has open in the engine, and opens again with the next leader. */
export interface Restorable {
  /** Submits the operation that opens it again. */
  restore(): void;
}

/** The numbers of one client. */
export class Numbers {
  /** The open snapshots by number. The value is undefined until the snapshot's read point is known. */
  readonly snapshots = new Map<number, Restorable | undefined>();
  /** Other objects to restore with another leader: the scans that have more batches. */
  readonly open = new Set<Restorable>();
  #scan = 0;
  #snapshot = 0;

  /** Opens everything again; snapshots first. */
  restore(): void {
    for (const snapshot of [...this.snapshots.values()]) snapshot?.restore();
    for (const one of [...this.open]) one.restore();
  }

  /** A number for a scan. */
  ofScan(): number {
    this.#scan = (this.#scan + 1) >>> 0 || 1;
    return this.#scan;
  }

  /** A number for a snapshot, open from now on. */
  ofSnapshot(): number {
    if (this.snapshots.size >= SNAPSHOTS_MAX) {
      throw invalid('65,535 snapshots are open. Close some.');
    }
    do this.#snapshot = (this.#snapshot % SNAPSHOTS_MAX) + 1;
    while (this.snapshots.has(this.#snapshot));
    this.snapshots.set(this.#snapshot, undefined);
    return this.#snapshot;
  }
}
