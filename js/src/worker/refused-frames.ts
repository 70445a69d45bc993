/**
 * What a frame is answered with that the engine has no memory for, or whose answer could not leave, because the storage refused what it may
 * have seen.
 *
 * Invariant: what it set and was not settled is not there, and it is told so; its reads are made again, in the store as it is now, and
 * once its deletes, which may fit where the sets beside them did not. A scan that had gone on within the frame cannot go back, and ends;
 * one that had not goes on.
 * Where no write was taken back, as when a flush was refused, its reads saw what there still is.
 */

import type { VarveError } from '../errors.ts';
import { ANSWER_HEADER_BYTES, OP_HEADER_BYTES, Op, RESPONSE_HEADER_BYTES } from '../protocol/frame.ts';
import type { EngineHost } from './engine-host.ts';
import {
  DELETES,
  type FrameOperation,
  type FrameProgress,
  frameOf,
  operationsOf,
  refusalOf,
  responseOf,
} from './settling-frames.ts';

const WRITES: readonly number[] = [Op.set, Op.batch, Op.sync, ...DELETES];
const REFUSED: readonly number[] = [Op.set, Op.batch, Op.sync, Op.scanNext];

/** A frame, and the answer that did not leave, if it came that far. */
export interface RefusedFrame {
  readonly request: Uint8Array;
  readonly progress: FrameProgress;
  readonly response?: Uint8Array<ArrayBuffer>;
  /** It was answered again before. */
  readonly isAgain: boolean;
}

/** Answers a frame again, but for those of its operations that were settled before the refusal. */
export async function answerAgain(
  host: EngineHost,
  { request, progress, response, isAgain }: RefusedFrame,
  error: VarveError,
): Promise<Required<RefusedFrame>> {
  const refused = isAgain ? [...REFUSED, ...DELETES] : REFUSED;
  const operations = operationsOf(request);
  const { settled } = progress;
  const given = response === undefined ? progress.answers : answersOf(response);
  const answers: Uint8Array[] = [];
  for (const [i, operation] of operations.entries()) {
    const before = given[i];
    const isKept = i < settled || (!host.hasLost && !WRITES.includes(operation.code));
    if (before !== undefined && isKept) {
      answers.push(before);
      continue;
    }
    const mayGoOn = operation.code === Op.scanNext && before === undefined && !host.hasLost;
    if (operation.code === Op.scanNext && !mayGoOn) host.run(frameOf(request, [closing(operation)]));
    if (refused.includes(operation.code) && !mayGoOn) answers.push(refusalOf(operation, error));
    else answers.push((await host.answer(frameOf(request, [operation]))).subarray(RESPONSE_HEADER_BYTES));
  }
  return { request, progress: { answers, settled }, response: responseOf(answers), isAgain: true };
}

/** The answers in a response. */
export function answersOf(response: Uint8Array): Uint8Array[] {
  const answers: Uint8Array[] = [];
  for (let at = RESPONSE_HEADER_BYTES; at < response.length; ) {
    const next = (at + ANSWER_HEADER_BYTES + u32(response, at + 8) + 3) & ~3;
    answers.push(response.subarray(at, next));
    at = next;
  }
  return answers;
}

/** Ends the scan that an operation moved. What others opened, they open again in its place. */
function closing({ bytes }: FrameOperation): FrameOperation {
  const end = bytes.slice(0, OP_HEADER_BYTES + 4);
  end[4] = Op.scanClose;
  new DataView(end.buffer).setUint32(12, 0, true);
  return { code: Op.scanClose, bytes: end };
}

function u32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
}
