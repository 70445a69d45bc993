/**
 * How an operation names the snapshot that it reads.
 *
 * Invariant: number 0 is the store at the time of the call.
 */

/** The snapshot number as a part of the level field: in front of the durability, which reads do not have. */
export function levelOfSnapshot(number: number): number {
  return number << 8;
}
