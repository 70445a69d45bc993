/**
 * Keys that a store reserves for itself.
 *
 * Invariant: their bytes begin with ff; keys of users never do. So they are in no range and in no export, and `clear` keeps them.
 */

/** The first byte of a reserved key. A range end that begins with it is after all keys of users. */
export const RESERVED = 0xff;

/** A reserved key, passed instead of a user's key. */
export class ReservedKey {
  readonly bytes: Uint8Array;
  readonly #isReserved = true;

  constructor(text: string) {
    this.bytes = Uint8Array.of(RESERVED, ...new TextEncoder().encode(text));
  }

  /** Whether it is one; no property of the object is read, because a proxy would notice that. */
  static is(key: unknown): key is ReservedKey {
    return #isReserved in Object(key);
  }
}
