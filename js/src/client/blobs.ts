/**
 * Reads the Blobs of a frame into the room that the encoder left for them. It is loaded when the first of them is to be read.
 *
 * Invariant: nothing waits for a Blob whose write was aborted. Closing waits for Blobs for `CLOSING_MS` only.
 */

import { bytesOf } from '../codec/blobs.ts';
import { VarveError } from '../errors.ts';
import { operationsOf, requestOf } from '../protocol/frame-bytes.ts';
import type { PendingFrame } from './pending-frame.ts';

/** How long closing waits for the bytes of Blobs. A file on a disk or a network that is gone may never return them. */
const CLOSING_MS = 5000;

/** Reads the Blobs of a frame that was not sent yet into it. A value whose Blob cannot be read is not written. */
export async function readInto(pending: PendingFrame): Promise<void> {
  for (const { request, offset, blob } of pending.unread) {
    try {
      const bytes = await Promise.race([bytesOf(blob), pending.aborted(request)]);
      if (pending.frame === undefined) continue;
      const operations = operationsOf(new Uint8Array(pending.frame));
      operations.find((operation) => requestOf(operation) === request)?.bytes.set(bytes, offset);
    } catch (error) {
      pending.drop(request, error);
    }
  }
}

/** The store is closing: in `CLOSING_MS` the writes whose Blobs are not read by then are refused, unless it was `closed` before. */
export function limit(frames: readonly PendingFrame[], closed: Promise<unknown>): void {
  const timer = setTimeout(() => {
    const message = 'The store was closed before the bytes of a Blob or File in this value came. It was not written.';
    for (const pending of frames)
      for (const { request } of pending.unread) pending.abort(request, new VarveError('VARVE_CLOSED', message));
  }, CLOSING_MS);
  const end = (): void => clearTimeout(timer);
  closed.then(end, end);
}
