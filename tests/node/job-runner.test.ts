/** Jobs beside the engine: who owns the slots of their outputs, however a job ends. */

import { expect, test, vi } from 'vitest';
import type { driveJob } from '../../js/src/compactor/drive-job.ts';
import type { JobServices, JobsBeside } from '../../js/src/engine/compactor-link.ts';
import { DeferredJobs } from '../../js/src/engine/deferred-jobs.ts';
import { JobRunner } from '../../js/src/engine/job-runner.ts';
import type { SlotKeeper } from '../../js/src/engine/slot-keeper.ts';
import { VarveError } from '../../js/src/errors.ts';
import { commitsOf } from '../../js/src/storage/commits.ts';
import { type DeferredDevice, type ManagedDevice, SlotError } from '../../js/src/storage/device.ts';
import type { JobTicket } from '../../js/src/wasm/job-ticket.ts';
import type { EngineStore } from '../../js/src/wasm/store.ts';

/** A job with two tables as its output, for `DeferredJobs`. */
const twoTables: typeof driveJob = async (_, hands) => {
  await hands.write(7, 0, new Uint8Array(1));
  hands.finish(7, 1);
  await hands.write(8, 0, new Uint8Array(1));
};
vi.mock('../../js/src/compactor/drive-job.ts', () => ({
  driveJob: (...job: Parameters<typeof driveJob>) => twoTables(...job),
}));
vi.mock('../../js/src/wasm/instantiate.ts', () => ({ instantiate: () => ({ fault: {} }) }));
vi.mock('../../js/src/wasm/job.ts', () => ({
  CompactionJob: class {
    free(): void {}
  },
}));

/** Runs one job of two outputs, the first of which is whole; returns the calls to the engine and the device. */
async function runJob(end: 'fails' | 'is done', finishJob: () => void = () => undefined): Promise<string[]> {
  const calls: string[] = [];
  const tickets = [{ id: 3, kind: 'compaction', spec: new Uint8Array(), bytesHint: 1 } as JobTicket];
  const engine = {
    takeJob: () => tickets.pop(),
    reclaim: (table: number) => calls.push(`reclaim ${table}`),
    discard: (table: number) => calls.push(`discard ${table}`),
    failJob: (id: number) => calls.push(`fail ${id}`),
    finishJob: (id: number) => {
      calls.push(`finish ${id}`);
      finishJob();
    },
  } as unknown as EngineStore;
  const device = { retake: async (slot: number) => calls.push(`retake ${slot}`) } as unknown as ManagedDevice;
  const slots = { lend: async (table: number) => 100 + table } as unknown as SlotKeeper;
  const beside: JobsBeside = {
    run: async (_ticket: JobTicket, { lend, finished }: JobServices) => {
      await lend(7);
      finished(7, 1);
      await lend(8);
      if (end === 'fails') throw new Error('no room for the second one');
      finished(8, 1);
      return new Uint8Array();
    },
    warm: () => undefined,
    shutDown: async () => undefined,
  } as unknown as JobsBeside;
  const runner = new JobRunner(engine, device, commitsOf(device), slots, beside);
  runner.kick();
  await runner.progress();
  await runner.shutDown();
  return calls;
}

/**
 * The story: a job failed after its first output was whole and had been returned. Only the slots that were still lent were freed, so the
 * slot of the first output stayed with a table that nothing referred to, until the store was opened again. On a full disk each attempt
 * took another slot.
 */
test('a job that fails returns the slots of all its outputs', async () => {
  const calls = await runJob('fails');
  expect(calls.filter((call) => call.startsWith('discard')).sort()).toEqual(['discard 7', 'discard 8']);
  expect(calls.filter((call) => call.startsWith('retake'))).toEqual(['retake 107', 'retake 108']);
  expect(calls.at(-1)).toBe('fail 3');
});

test("outputs of a job that is done are the engine's, also where it refuses them", async () => {
  const done = ['reclaim 7', 'reclaim 8', 'finish 3'];
  const calls = await runJob('is done');
  expect(calls.filter((call) => !call.startsWith('retake'))).toEqual(done);
  const refused = await runJob('is done', () => {
    throw new Error('no room for an edit');
  });
  expect(refused.filter((call) => !call.startsWith('retake'))).toEqual([...done, 'fail 3']);
});

/**
 * The story: a merge beside the engine found a damaged block. The engine learnt only that the job had failed, and offered it again, for ever.
 * So it is told which table it was, and then merges other tables.
 */
test('a job that finds damage names the table to the engine', async () => {
  const tickets = [{ id: 3, kind: 'compaction', spec: new Uint8Array(), bytesHint: 1 } as JobTicket];
  const calls: string[] = [];
  const damage = new VarveError('VARVE_CORRUPT', 'A block of a table is damaged.');
  const engine = {
    takeJob: () => tickets.pop(),
    failJob: (id: number) => calls.push(`fail ${id}`),
    noteDamage: (table: number) => calls.push(`damage ${table}`),
  } as unknown as EngineStore;
  const device = { lendable: true } as unknown as ManagedDevice;
  const run: JobsBeside['run'] = async (_, services) => {
    services.damaged(5);
    throw damage;
  };
  const beside = { run, shutDown: async () => undefined } as unknown as JobsBeside;
  const runner = new JobRunner(engine, device, commitsOf(device), {} as SlotKeeper, beside);
  runner.kick();
  await runner.progress();
  await runner.shutDown();
  expect([calls, runner.failure]).toEqual([['damage 5', 'fail 3'], damage]);
});

/** The story: nobody fetched the bytes that the engine reads to choose a job, so a deleted range kept its tables until something else read them. */
test('bytes that the engine needs to choose a job are fetched', async () => {
  let missing = 2;
  const engine = {
    takeJob: () => {
      if (missing > 0) throw new SlotError('pending', 'Bytes are missing.');
    },
  } as unknown as EngineStore;
  const device = {
    committed: async () => undefined,
    resident: async (call: () => void) => {
      for (; ; missing--) {
        try {
          return call();
        } catch {
          await undefined;
        }
      }
    },
  } as unknown as ManagedDevice;
  const beside = { shutDown: async () => undefined } as unknown as JobsBeside;
  const runner = new JobRunner(engine, device, commitsOf(device), {} as SlotKeeper, beside);
  runner.kick();
  runner.kick();
  expect(runner.isBusy()).toBe(true);
  await runner.progress();
  expect([missing, runner.isBusy(), runner.failure]).toEqual([0, false, undefined]);
  await runner.shutDown();
});

/**
 * The story: on a full storage a job found no room for its second table, and emptied the slots of both. But the engine had the first one back
 * already, and had put a new segment of the log behind the table. So acknowledged deletes were lost.
 */
test('a job over a deferred device that finds no room empties only the slots that the engine does not have back', async () => {
  const calls: string[] = [];
  const device = {
    retake: async () => undefined,
    flush: () => undefined,
    writeApart: async (slot: number) => {
      if (slot === 108) throw new SlotError('full', 'There is no room.');
    },
    discard: async (slot: number) => void calls.push(`empty ${slot}`),
  } as unknown as DeferredDevice;
  const services = {
    lend: async (table: number) => 100 + table,
    finished: (table: number) => calls.push(`finished ${table}`),
  } as unknown as JobServices;
  const jobs = new DeferredJobs({} as WebAssembly.Module, device);
  const running = jobs.run({ spec: new Uint8Array() } as JobTicket, services);
  await expect(running).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  expect(calls).toEqual(['finished 7', 'empty 108']);
});

// The story: many stores were open, so that there was no memory for another engine. After three jobs over IndexedDB had failed for that
// reason, all later ones were run in slices, which never find their input there: the store flushed and merged nothing any more.
test('jobs over a deferred device run beside the engine again, however often there was no memory for them', async () => {
  const tickets: JobTicket[] = [];
  const engine = { takeJob: () => tickets.pop(), failJob: () => undefined, runSlice: () => false };
  const device = { committed: async () => undefined, lendable: false } as unknown as ManagedDevice;
  const run = vi.fn(() => Promise.reject(new VarveError('VARVE_UNAVAILABLE', 'There is no memory.')));
  const beside = { run, shutDown: async () => undefined } as unknown as JobsBeside;
  const store = engine as unknown as EngineStore;
  const runner = new JobRunner(store, device, commitsOf(device), {} as SlotKeeper, beside);
  for (let n = 0; n < 5; n++) {
    tickets.push({ id: n, kind: 'flush', spec: new Uint8Array(), bytesHint: 1 } as JobTicket);
    runner.kickNow();
    await runner.progress();
  }
  await runner.shutDown();
  expect(run).toHaveBeenCalledTimes(5);
});
