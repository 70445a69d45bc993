/**
 * Keys that a store keeps for itself.
 *
 * Invariant: their bytes begin with ff, which no key of a user does. So they are in no range, in no export, and `clear` leaves them.
 */

/** A reserved key, in the place of a user's key. */
export class ReservedKey {
  readonly bytes: Uint8Array;
  readonly #isReserved = true;

  constructor(text: string) {
    this.bytes = Uint8Array.of(0xff, ...new TextEncoder().encode(text));
  }

  /** Whether it is one; nothing of the object is asked, as a proxy would notice. */
  static is(key: object): key is ReservedKey {
    return #isReserved in key;
  }
}
