/**
 * Waiting for something other than the engine: a lock, a caller, the bytes of a Blob.
 *
 * Invariant: nothing waits behind the end of its store, and a transaction handle does not wait in a frozen page.
 */

import type { Client } from '../client/client.ts';
import type { BlobSink } from '../codec/blobs.ts';
import { hasCode } from '../errors.ts';
import { untilAborted } from '../runtime/until-aborted.ts';

/** Resolves with the awaited value; rejects when the transaction handles of the client must end. */
export function untilEnded<T>({ handles }: Client, awaited: PromiseLike<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const ended = (): void => void handles.delete(reject);
    handles.add(reject);
    awaited.then(resolve, reject);
    awaited.then(ended, ended);
  });
}

/** Reads Blobs; rejects when the signal aborts, and when the store is closed. A frozen page goes on when it is back. */
export async function readBlobs(client: Client, blobs: BlobSink, signal: AbortSignal | undefined): Promise<void> {
  for (;;) {
    client.ensureOpen();
    signal?.throwIfAborted();
    try {
      return await untilEnded(client, untilAborted(blobs.read(), signal));
    } catch (error) {
      if (!hasCode(error, 'VARVE_RETRY')) throw error;
    }
  }
}
