/** Jobs that the engine refuses between turns: no caller is there to catch the error. */

import { expect, test, vi } from 'vitest';
import type { JobsBeside } from '../../js/src/engine/compactor-link.ts';
import { JobRunner } from '../../js/src/engine/job-runner.ts';
import { SlotKeeper } from '../../js/src/engine/slot-keeper.ts';
import { Upkeep } from '../../js/src/engine/upkeep.ts';
import { VarveError } from '../../js/src/errors.ts';
import { commitsOf } from '../../js/src/storage/commits.ts';
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
  return new JobRunner(store, device, commitsOf(device), new SlotKeeper(store, device), compactor);
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

/**
 * The story: on a full disk, a flush was refused while everything was to be merged. That ended the merge, slices freed room, and `compact()`
 * resolved with nine tables in level 0.
 */
test.each([
  ['merges on its second attempt', 2],
  ['is refused if that does not merge everything either', 3],
])('a compaction in which a job found no room %s', async (_, mergedAt) => {
  let asked = 0;
  const full = new VarveError('VARVE_STORAGE_FULL', 'The storage is full.');
  const tickets: JobTicket[] = [];
  const level = (tables: number) => ({ tables, bytes: tables, score: 0 });
  const engine = {
    askForCompaction: () => {
      if (++asked === 1) tickets.push(ticket);
    },
    takeJob: () => tickets.pop(),
    failJob: () => undefined,
    runSlice: () => false,
    tick: () => undefined,
    release: () => undefined,
    isStalled: () => false,
    writesSinceSeal: () => 0,
    hasDamage: () => false,
    wantedSlots: () => 0,
    isUnsynced: () => false,
    fault: { found: undefined },
    stats: () => ({
      levels: asked < mergedAt ? [level(9), level(3)] : [level(0), level(1)],
      memtable: { bytes: 0, frozenBytes: 0 },
      compaction: { running: false, doneBytes: 0, plannedBytes: 0 },
    }),
  } as unknown as EngineStore;
  const compactor = { run: () => Promise.reject(full), shutDown: () => undefined } as unknown as JobsBeside;
  const device = new MemoryDevice();
  const upkeep = new Upkeep({ store: engine, device, commits: commitsOf(device), compactor, onTurn: undefined });
  const compacted = upkeep.compact(() => undefined);
  if (mergedAt === 2) await compacted;
  else await expect(compacted).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  expect(asked).toBe(2);
  await upkeep.shutDown();
});
