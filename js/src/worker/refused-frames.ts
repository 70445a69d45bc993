/**
 * What a frame is answered with whose answer could not leave, because the storage refused what it may have seen.
 *
 * Each operation has a fate:
 *
 *     kept      it is settled; or it wrote nothing, was answered, and the store has lost nothing since
 *     refused   it sets; or it deletes and had its second chance: deletes may fit where the sets beside them did not
 *     run       all else: reads see the store as it is now
 *
 * Invariant: what is refused is not there, and what is there is not refused, however often the storage refuses: what is settled counts
 * from one attempt to the next, and each attempt comes further. A scan that had gone on within the frame cannot go back, and ends;
 * one that had not goes on, unless the store lost something.
 */

import type { VarveError } from '../errors.ts';
import { OP_HEADER_BYTES, Op } from '../protocol/frame.ts';
import type { SettlingDevice } from '../storage/device.ts';
import { type FrameOperation, frameOf, operationsOf, refusalOf } from './frame-bytes.ts';
import { DELETES } from './patience.ts';
import { type FrameHost, type FrameProgress, runEach, WRITES } from './settling-frames.ts';

/** Answers a frame again, but for those of its operations that were settled before the refusal. */
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

/** Ends the scan that an operation moved. What others opened, they open again in its place. */
function closing({ bytes }: FrameOperation): FrameOperation {
  const end = bytes.slice(0, OP_HEADER_BYTES + 4);
  end[4] = Op.scanClose;
  new DataView(end.buffer).setUint32(12, 0, true);
  return { code: Op.scanClose, bytes: end };
}
