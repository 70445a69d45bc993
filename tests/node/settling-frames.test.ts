// Frames run operation by operation: what is run again, and what must not be.

import { expect, test } from 'vitest';
import { FRAME_HEADER_BYTES, OP_HEADER_BYTES, Op, RESPONSE_HEADER_BYTES } from '../../js/src/protocol/frame.ts';
import type { SettlingDevice } from '../../js/src/storage/device.ts';
import { frameOf, responseOf, runSettling } from '../../js/src/worker/settling-frames.ts';

const OK = 0;
const ERROR = 2;

/** An operation without key and value. */
function operation(code: number): { code: number; bytes: Uint8Array } {
  const bytes = new Uint8Array(OP_HEADER_BYTES);
  bytes[4] = code;
  return { code, bytes };
}

/** Runs a frame of two operations whose every first run comes upon missing bytes; tells how often each was run. */
async function runsOf(code: number, firstStatus: number): Promise<number> {
  let [runs, fetches, isMissing] = [0, 0, false];
  const answerOf = (status: number): Uint8Array => {
    const answer = new Uint8Array(OP_HEADER_BYTES);
    answer[4] = status;
    return answer;
  };
  const host = {
    ready: async () => undefined,
    isStalled: () => false,
    makeRoom: async () => false,
    run: () => {
      runs++;
      isMissing = fetches === 0;
      return responseOf([answerOf(isMissing ? firstStatus : OK)]);
    },
  };
  const device = {
    attempt: <T>(call: () => T) => {
      const value = call();
      return isMissing ? undefined : { value };
    },
    fetch: async () => void fetches++,
    settle: async () => undefined,
    letGo: () => undefined,
  } as unknown as SettlingDevice;
  const frame = frameOf(new Uint8Array(FRAME_HEADER_BYTES), [operation(code)]);
  const response = await runSettling(host, device, frame, { answers: [], settled: 0 });
  expect(response[RESPONSE_HEADER_BYTES + 4]).toBe(OK);
  return runs;
}

test('a write that was done does not run again, whatever was missing beside it; one that failed does', async () => {
  expect(await runsOf(Op.batch, OK)).toBe(1);
  expect(await runsOf(Op.batch, ERROR)).toBe(2);
});

test('a read that came upon missing bytes runs again, even if it was answered', async () => {
  expect(await runsOf(Op.scanNext, OK)).toBe(2);
  expect(await runsOf(Op.changes, OK)).toBe(2);
});
