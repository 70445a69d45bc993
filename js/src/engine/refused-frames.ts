/**
 * The new answer to a frame whose first answer could not be sent, because the storage refused a commit that the frame may have seen.
 *
 * Each operation has one of these outcomes:
 *
 *     kept      it is committed; or it wrote nothing, was answered, and the store has lost nothing since
 *     refused   it sets; or it deletes and had its second chance: deletes may fit where the sets beside them did not
 *     run       all others: reads see the store as it is now
 *
 * Invariant: a refused write is not in the store, and a write in the store is not refused, however often the storage refuses.
 * Committed operations stay committed from one attempt to the next, and each attempt comes further. A scan that moved forward within
 * the frame cannot go back, and ends. A scan that did not move goes on, unless the store lost something.
 */

import type { VarveError } from '../errors.ts';
import { OP_HEADER_BYTES, Op } from '../protocol/frame.ts';
import { type FrameOperation, frameOf, operationsOf, refusalOf } from '../protocol/frame-bytes.ts';
import type { SettlingDevice } from '../storage/device.ts';
import { DELETES, type FrameHost } from './patience.ts';
import { type FrameProgress, runEach, WRITES } from './settling-frames.ts';

/** Answers a frame again, except those of its operations that were committed before the refusal. */
export async function answerAgain(
  host: FrameHost,
  device: SettlingDevice,
  progress: FrameProgress,
  error: VarveError,
): Promise<Uint8Array<ArrayBuffer>> {
  const { request } = progress;
  const given = (operation: FrameOperation, i: number): Uint8Array | undefined => {
    const { code } = operation;
    const isKept = i < progress.settled || !(progress.isLost || WRITES.includes(code));
    const before = isKept ? progress.answers[i] : undefined;
    if (before !== undefined) return before;
    const isEnded = code === Op.scanNext && progress.isLost;
    if (isEnded) host.run(frameOf(request, [closing(operation)]));
    const mayRun = DELETES.includes(code) ? i >= progress.retried : !WRITES.includes(code);
    if (isEnded || !mayRun) return refusalOf(operation, error);
    progress.retried = Math.max(progress.retried, i + 1);
    return undefined;
  };
  const response = await runEach(host, device, progress, operationsOf(request), given);
  progress.isLost = false;
  return response;
}

/** The operation that ends the scan that `operation` moved. Operations that opened a scan run again, which replaces it. */
function closing({ bytes }: FrameOperation): FrameOperation {
  const end = bytes.slice(0, OP_HEADER_BYTES + 4);
  end[4] = Op.scanClose;
  new DataView(end.buffer).setUint32(12, 0, true);
  return { code: Op.scanClose, bytes: end };
}
