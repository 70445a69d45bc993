/** Jobs that the engine refuses between turns: no caller is there to catch the error. */

import { expect, test, vi } from 'vitest';
import type { JobsBeside } from '../../js/src/engine/compactor-link.ts';
import { JobRunner } from '../../js/src/engine/job-runner.ts';
import { SlotKeeper } from '../../js/src/engine/slot-keeper.ts';
import { VarveError } from '../../js/src/errors.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import type { JobTicket } from '../../js/src/wasm/job-ticket.ts';
import type { EngineStore } from '../../js/src/wasm/store.ts';

const ticket = { id: 1, kind: 'flush', spec: new Uint8Array(1), bytesHint: 1 } as unknown as JobTicket;

/** A runner over an engine that has only the given methods. */
function runnerOver(engine: Partial<EngineStore>): JobRunner {
  const store = engine as EngineStore;
  const device = new MemoryDevice();
  const compactor: JobsBeside = {
    run: async () => new Uint8Array(0),
    warm: () => undefined,
    shutDown: () => undefined,
  };
  return new JobRunner(store, device, new SlotKeeper(store, device), compactor);
}

test('an engine that refuses to plan the next job is asked again after a pause', async () => {
  vi.useFakeTimers();
  try {
    const takeJob = vi
      .fn<EngineStore['takeJob']>()
      .mockReturnValueOnce(ticket)
      .mockImplementationOnce(() => {
        throw new VarveError('VARVE_IO', 'not now');
      })
      .mockReturnValue(undefined);
    const runner = runnerOver({ takeJob, finishJob: () => undefined });
    runner.kick();
    await vi.waitFor(() => expect(runner.failure?.code).toBe('VARVE_IO'));
    expect(takeJob).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(1000);
    expect(takeJob).toHaveBeenCalledTimes(3);
    await runner.shutDown();
  } finally {
    vi.useRealTimers();
  }
});

test('a job that can be neither finished nor given up does not prevent closing', async () => {
  const refuse = (): never => {
    throw new VarveError('VARVE_INTERNAL', 'the engine stopped');
  };
  const takeJob = vi.fn<EngineStore['takeJob']>().mockReturnValueOnce(ticket).mockReturnValue(undefined);
  const runner = runnerOver({ takeJob, finishJob: refuse, failJob: refuse });
  runner.kick();
  await runner.progress();
  await runner.shutDown();
  expect(runner.isBusy()).toBe(false);
});
