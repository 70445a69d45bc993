/**
 * Snapshots as the engine has them open for a client, by their numbers.
 *
 * Invariant: one that is open is opened again with every other leader, until it is let go of.
 */

import type { Seen } from '../protocol/frame-reader.ts';
import type { Client } from '../worker/client.ts';
import { levelOfSnapshot } from './moment.ts';
import { snapshot_close, snapshot_open, snapshot_restore } from './operations.ts';

/** A snapshot that is open. */
export interface Held {
  readonly client: Client;
  readonly number: number;
}

/** A snapshot that was taken. */
export interface Taken extends Seen {
  readonly number: number;
}

/** Takes a snapshot of the store at this call, which calls that follow may name at once; `letGo` ends it. */
export async function take(client: Client, number = client.numbers.ofSnapshot()): Promise<Taken> {
  const { snapshots } = client.numbers;
  try {
    const seen = await client.submit(snapshot_open, undefined, undefined, levelOfSnapshot(number));
    // Where that cannot be done, whoever reads it is told VARVE_RETRY.
    const restore = (): void => {
      client.submit(snapshot_restore, undefined, seen, levelOfSnapshot(number)).catch(() => undefined);
    };
    if (snapshots.has(number)) snapshots.set(number, { restore });
    return { ...seen, number };
  } catch (error) {
    // It may be opened yet: by a leader that thaws, after the call was given up.
    void letGo({ client, number });
    throw error;
  }
}

/** Lets a snapshot go; its number may be another one's afterwards. */
export function letGo({ client, number }: Held): Promise<void> {
  client.numbers.snapshots.delete(number);
  // A store that is closed has let go of it already.
  return client.submit(snapshot_close, undefined, undefined, levelOfSnapshot(number)).catch(() => undefined);
}
