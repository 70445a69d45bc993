// Frames run operation by operation: which operations run again, and which must not.

import { afterEach, expect, test, vi } from 'vitest';
import { DeferredFrame } from '../../js/src/engine/deferred-frame.ts';
import { VarveError } from '../../js/src/errors.ts';
import { FRAME_HEADER_BYTES, OP_HEADER_BYTES, Op, RESPONSE_HEADER_BYTES } from '../../js/src/protocol/frame.ts';
import { answersOf, frameOf, responseOf } from '../../js/src/protocol/frame-bytes.ts';
import type { DeferredDevice } from '../../js/src/storage/device.ts';

const OK = 0;
const ERROR = 2;
/** The number of `VARVE_STORAGE_FULL`. */
const FULL = 2;

afterEach(() => vi.useRealTimers());

/** An operation without key and value. */
function operation(code: number): { code: number; bytes: Uint8Array } {
  const bytes = new Uint8Array(OP_HEADER_BYTES);
  bytes[4] = code;
  return { code, bytes };
}

/** Runs a frame of two operations; every first run finds bytes missing. Returns how often each operation was run. */
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
    respond: () => {
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
    committed: async () => undefined,
    unpin: () => undefined,
  } as unknown as DeferredDevice;
  const frame = frameOf(new Uint8Array(FRAME_HEADER_BYTES), [operation(code)]);
  const response = await new DeferredFrame(frame).run(host, device);
  expect(response[RESPONSE_HEADER_BYTES + 4]).toBe(OK);
  return runs;
}

test('a write that was done does not run again, whatever was missing beside it; one that failed does', async () => {
  expect(await runsOf(Op.batch, OK)).toBe(1);
  expect(await runsOf(Op.batch, ERROR)).toBe(2);
});

test('a read that found bytes missing runs again, even if it was answered', async () => {
  expect(await runsOf(Op.scanNext, OK)).toBe(2);
  expect(await runsOf(Op.changes, OK)).toBe(2);
});

/**
 * Runs a frame on a storage in which a write fits if `fits` says so; returns how often each operation ran, how often room was made, and
 * the answers.
 */
async function onFull(codes: readonly number[], fits: (i: number) => boolean, isTight = false) {
  vi.useFakeTimers({ toFake: ['performance'] });
  const runs = codes.map(() => 0);
  let rooms = 0;
  const host = {
    ready: async () => undefined,
    isStalled: () => false,
    makeRoom: async () => {
      rooms++;
      vi.advanceTimersByTime(100);
      return true;
    },
    respond: (request: Uint8Array) => {
      const i = request[FRAME_HEADER_BYTES] ?? 0;
      runs[i] = (runs[i] ?? 0) + 1;
      const answer = new Uint8Array(OP_HEADER_BYTES + 4);
      answer[4] = fits(i) ? OK : ERROR;
      answer[8] = 4;
      answer[OP_HEADER_BYTES] = FULL;
      return responseOf([answer]);
    },
  };
  const device = {
    isTight,
    attempt: <T>(call: () => T) => ({ value: call() }),
    committed: async () => undefined,
    unpin: () => undefined,
  } as unknown as DeferredDevice;
  const operations = codes.map((code, i) => {
    const one = operation(code);
    one.bytes[0] = i;
    return one;
  });
  // Something in the frame is not a plain write.
  const frame = frameOf(new Uint8Array(FRAME_HEADER_BYTES), operations);
  const response = await new DeferredFrame(frame).run(host, device);
  return { runs, rooms, statuses: answersOf(response).map((answer) => answer[4]) };
}

test('the sets of a frame that find no room wait for it together, not each by itself', async () => {
  const { runs, rooms, statuses } = await onFull([Op.has, ...Array(100).fill(Op.set)], (i) => i === 0);
  expect(statuses).toEqual([OK, ...Array(100).fill(ERROR)]);
  expect(rooms).toBeLessThanOrEqual(51);
  expect(runs.slice(2)).toEqual(Array(99).fill(0));
});

test('while the storage keeps its room for deletes, the sets of a frame do not wait one by one', async () => {
  const { runs, rooms } = await onFull([Op.has, ...Array(100).fill(Op.set)], () => true, true);
  expect(rooms).toBeLessThanOrEqual(51);
  expect(runs).toEqual([1, ...Array(100).fill(0)]);
});

test('behind sets that were refused deletes are tried as long as they get through, and then one set again', async () => {
  let left = 30;
  // Every other attempt of a delete is refused.
  const fits = (i: number): boolean => i === 0 || (i > 2 && i < 63 && left-- % 2 === 0) || i > 62;
  const codes = [Op.has, Op.set, Op.set, ...Array(60).fill(Op.delete), Op.set];
  const { statuses } = await onFull(codes, fits);
  expect(statuses).toEqual([OK, ERROR, ERROR, ...Array(60).fill(OK), OK]);
  const { rooms, runs } = await onFull([Op.has, ...Array(100).fill(Op.delete)], (i) => i === 0);
  expect(rooms).toBeLessThanOrEqual(21);
  expect(runs.slice(2)).toEqual(Array(99).fill(1));
});

test('a frame keeps its reads after a commit was refused, unless the store lost something since; scans that moved stay', async () => {
  let runs = 0;
  const answer = (): Uint8Array => new Uint8Array(OP_HEADER_BYTES);
  const host = {
    ready: async () => undefined,
    isStalled: () => false,
    makeRoom: async () => false,
    respond: () => {
      runs++;
      return responseOf([answer()]);
    },
  };
  const device = {
    attempt: <T>(call: () => T) => ({ value: call() }),
    committed: async () => undefined,
    unpin: () => undefined,
  } as unknown as DeferredDevice;
  const codes = [Op.get, Op.set, Op.delete, Op.get, Op.scanNext];
  const frame = frameOf(new Uint8Array(FRAME_HEADER_BYTES), codes.map(operation));
  const refusal = new VarveError('VARVE_STORAGE_FULL', 'The storage is full.');
  const again = async (isLost: boolean): Promise<[runs: number, statuses: (number | undefined)[]]> => {
    const refused = Object.assign(new DeferredFrame(frame), { answers: codes.map(answer), isLost, committed: 1 });
    runs = 0;
    const response = await refused.runAgain(host, device, refusal);
    return [runs, answersOf(response).map((one) => one[4])];
  };
  // The set is refused; the delete gets a second chance.
  expect(await again(false)).toEqual([1, [OK, ERROR, OK, OK, OK]]);
  expect(await again(true)).toEqual([2, [OK, ERROR, OK, OK, OK]]);
});
