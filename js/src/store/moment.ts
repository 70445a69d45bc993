/**
 * How an operation names the snapshot that it reads.
 *
 * Invariant: number 0 is the store at the moment of the call.
 */

/** Where the snapshot of an operation has its place: in front of the durability, which reads have none of. */
export function levelOfSnapshot(number: number): number {
  return number << 8;
}
