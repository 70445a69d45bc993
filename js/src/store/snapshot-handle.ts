/**
 * Snapshots that the engine has open for a client, by their numbers.
 *
 * Invariant: an open snapshot is opened again with every new leader, until it is released.
 */

import type { Client } from '../client/client.ts';
import { snapshotClose, snapshotOpen, snapshotRestore } from '../client/operations.ts';
import type { ReadPoint } from '../protocol/frame-reader.ts';

/** The level field of an operation that reads a snapshot: its number, in front of the durability, which reads do not have. 0: now. */
export function levelOfSnapshot(number: number): number {
  return number << 8;
}

/** An open snapshot. */
export interface SnapshotHandle {
  readonly client: Client;
  readonly number: number;
}

/**
 * Takes a snapshot of the store at this call. Later calls may use its number at once; `releaseSnapshot` ends it. Release it also if this
 * rejects: a leader that was frozen may still open it when it wakes up.
 */
export async function takeSnapshot({ client, number }: SnapshotHandle): Promise<ReadPoint> {
  const { snapshots } = client.numbers;
  const readPoint = await client.submit(snapshotOpen, undefined, undefined, levelOfSnapshot(number));
  // If that is impossible, reads of it fail with VARVE_RETRY.
  const restore = (): void => {
    client.submit(snapshotRestore, undefined, readPoint, levelOfSnapshot(number)).catch(() => undefined);
  };
  if (snapshots.has(number)) snapshots.set(number, { restore });
  return readPoint;
}

/**
 * Releases a snapshot; another one may have its number afterwards. Until the leader has released it, the next leader opens it again: a
 * commit that was under way when a leader ended had lost its snapshot, and was refused with VARVE_RETRY.
 */
export async function releaseSnapshot({ client, number }: SnapshotHandle): Promise<void> {
  // A closed store has released it already.
  await client.submit(snapshotClose, undefined, undefined, levelOfSnapshot(number)).catch(() => undefined);
  client.numbers.snapshots.delete(number);
}
