/**
 * Leases on what clients keep of their reads (Gray and Cheriton, "Leases", 1989): the rules on which leader and client agree.
 *
 *     client -> leader   a frame with `RequestFlag.lease`, or the call `renew`
 *     leader -> client   its answer, granted: the client may keep what it has read, for LEASE_MS from when it SENT the request
 *     leader -> client   `revoke`: the client drops what it keeps of a footprint
 *     client -> leader   `revoked`
 *
 * Invariant: a write is executed only when every other client that may keep something of its footprint has dropped it, or its lease
 * has ended. So a kept value is the newest one. This relies on the following:
 *
 * - Messages of one client arrive in the order in which they were sent, both ways.
 * - The clocks of both sides go on at the same rate (`performance.now()`). They need not show the same time: the client counts from
 *   when it sent its request, and the leader from when it answers, which is later. `LEASE_MARGIN_MS` is for coarse clocks.
 */

import { FRAME_HEADER_BYTES } from './frame.ts';

/** How long a client may answer from what it keeps, in milliseconds from the request that got the lease. */
export const LEASE_MS = 2000;
/** The leader waits this much longer, in milliseconds: browsers round their clocks to 100 ms at most. */
export const LEASE_MARGIN_MS = 250;

/** Flags of a request frame, in its last u32. The server takes them out before the engine gets the frame. */
export const RequestFlag = { lease: 1 } as const;

/** Flags of a response frame, in the highest bits of its count. */
export const ResponseFlag = {
  /** The client may keep what it has read, and what it keeps stays valid. */
  granted: 0x8000_0000,
  /** With `granted`: an earlier lease had ended, so the client drops all that it kept before. */
  isNew: 0x4000_0000,
} as const;

/** The `RequestFlag`s of a request frame, which are then taken out of it. */
export function takeFlags(frame: Uint8Array): number {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  if (frame.length < FRAME_HEADER_BYTES) return 0;
  const flags = view.getUint32(20, true);
  view.setUint32(20, 0, true);
  return flags;
}

/** Puts `ResponseFlag`s into a response frame. */
export function markResponse(frame: Uint8Array, flags: number): void {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  view.setUint32(4, view.getUint32(4, true) | flags, true);
}
