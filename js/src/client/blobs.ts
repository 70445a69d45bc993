/** Reads the Blobs of a frame into the room that the encoder left for them. It is loaded when the first of them is to be read. */

import { bytesOf } from '../codec/blobs.ts';
import { FRAME_HEADER_BYTES, OP_HEADER_BYTES } from '../protocol/frame.ts';
import type { PendingFrame } from './pending-frame.ts';

/** Reads the Blobs of a frame that was not sent yet into it. A value whose Blob cannot be read is not written. */
export async function readInto(pending: PendingFrame): Promise<void> {
  for (const { request, offset, blob } of pending.unread) {
    try {
      const bytes = await bytesOf(blob);
      if (pending.frame === undefined) continue;
      const frame = new Uint8Array(pending.frame);
      const at = startOf(frame, request);
      if (at !== undefined) frame.set(bytes, at + offset);
    } catch (error) {
      pending.drop(request, error);
    }
  }
}

/** Where an operation of a frame begins. */
function startOf(bytes: Uint8Array, request: number): number | undefined {
  const view = new DataView(bytes.buffer);
  for (let at = FRAME_HEADER_BYTES; at < bytes.length; ) {
    if (view.getUint32(at, true) === request) return at;
    const length = OP_HEADER_BYTES + view.getUint32(at + 8, true) + view.getUint32(at + 12, true);
    at += (length + 3) & ~3;
  }
  return undefined;
}
