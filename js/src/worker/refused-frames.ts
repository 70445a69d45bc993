/**
 * What a frame is answered with whose answer could not leave, because the storage refused what it may have seen.
 *
 * Invariant: what it wrote and was not settled is not there, and it is told so; its reads are made again, in the store as it is now. A scan
 * that had gone on within the frame cannot go back, and ends.
 */

import type { VarveError } from '../errors.ts';
import { OP_HEADER_BYTES, Op, RESPONSE_HEADER_BYTES } from '../protocol/frame.ts';
import type { EngineHost } from './engine-host.ts';
import { type FrameOperation, type FrameProgress, frameOf, operationsOf, responseOf } from './settling-frames.ts';

const REFUSED: readonly number[] = [Op.set, Op.delete, Op.deleteRange, Op.batch, Op.sync, Op.scanNext];

/** What the page has names for; to have them here too, pages would load more. */
const ANSWER_HEADER_BYTES = OP_HEADER_BYTES;
const STATUS_ERROR = 2;
/** The number of `VARVE_STORAGE_FULL`. */
const STORAGE_FULL = 2;

/** A frame, and the answer that did not leave, if it came that far. */
export interface RefusedFrame {
  readonly request: Uint8Array;
  readonly progress: FrameProgress;
  readonly response?: Uint8Array<ArrayBuffer>;
}

/** Answers a frame again, but for those of its operations that were settled before the refusal. */
export async function answerAgain(
  host: EngineHost,
  { request, progress, response }: RefusedFrame,
  error: VarveError,
): Promise<Required<RefusedFrame>> {
  const operations = operationsOf(request);
  const { settled } = progress;
  const given = response === undefined ? progress.answers : answersOf(response);
  const answers: Uint8Array[] = [];
  for (const [i, operation] of operations.entries()) {
    const before = given[i];
    if (before !== undefined && i < settled) {
      answers.push(before);
      continue;
    }
    if (operation.code === Op.scanNext) host.run(frameOf(request, [closing(operation)]));
    if (REFUSED.includes(operation.code)) answers.push(refusalOf(operation, error));
    else answers.push((await host.answer(frameOf(request, [operation]))).subarray(RESPONSE_HEADER_BYTES));
  }
  return { request, progress: { answers, settled }, response: responseOf(answers) };
}

/** The answers in a response. */
function answersOf(response: Uint8Array): Uint8Array[] {
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

function refusalOf({ bytes }: FrameOperation, error: VarveError): Uint8Array {
  const text = new TextEncoder().encode(error.message);
  const answer = new Uint8Array(ANSWER_HEADER_BYTES + ((4 + text.length + 3) & ~3));
  const view = new DataView(answer.buffer);
  view.setUint32(0, u32(bytes, 0), true);
  answer[4] = STATUS_ERROR;
  view.setUint32(8, 4 + text.length, true);
  view.setUint32(ANSWER_HEADER_BYTES, STORAGE_FULL, true);
  answer.set(text, ANSWER_HEADER_BYTES + 4);
  return answer;
}

function u32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
}
