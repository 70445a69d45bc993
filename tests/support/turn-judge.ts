// Judges one synchronous turn that is killed in its middle. It must accept all its writes, and all of them must be there afterwards.
// Neither the engine's memory nor the disk may take more than the budget and the data require.

import { expect } from 'vitest';
import { randomFrom } from './random.ts';
import { BATCHES_PER_MEGABYTE, type TurnFound, type TurnPlan, type TurnReport } from './turn.ts';

/** The memory of an engine besides its budget: the engine itself, and the inputs and outputs that a flush and a merge have. */
const ENGINE_BYTES = 24 << 20;
/** The share that the allocator loses between its allocations. */
const LOST_SHARE = 0.25;
/** Tables grow with the store, and so do the index and the filter of a table that is being written. */
const TABLE_SHARE = 0.004;
/** The disk space of a store besides twice its data: twenty tables in level 0, the log, and the files that a merge writes and frees. */
const DISK_MEGABYTES = 160;

/** The place where turns run. */
export interface TurnDriver {
  /** Writes a new store in one turn, and ends its process at once when `isEnough`. Returns all reports. */
  write(plan: TurnPlan, isEnough: (report: TurnReport) => boolean): Promise<TurnReport[]>;
  /** Opens the remains, reads and closes the store. */
  read(plan: TurnPlan): Promise<TurnFound>;
}

/** The turns of a test that writes this many megabytes: their names, and their plans. */
export function turnsOf(seed: number, megabytes: number): [string, TurnPlan][] {
  const part = (share: number): number => Math.ceil(megabytes / share);
  const memoryBytes = 32 << 20;
  return [
    ['a load', { seed, memoryBytes, megabytes, keysMegabytes: megabytes * 2 }],
    ['a load in little memory', { seed, memoryBytes: 1 << 20, megabytes: part(5), keysMegabytes: part(5) * 2 }],
    ['overwriting', { seed, memoryBytes, megabytes, keysMegabytes: part(10) }],
  ];
}

/** Runs a turn, kills it when it has written enough, and judges what it used and what it left. */
export async function liveTurn(driver: TurnDriver, name: string, plan: TurnPlan): Promise<void> {
  const began = performance.now();
  const enough = plan.megabytes * BATCHES_PER_MEGABYTE + randomFrom(plan.seed, plan.memoryBytes)(200);
  const reports = await driver.write(plan, ({ batches }) => batches >= enough);
  const last = reports.at(-1);
  if (last === undefined || last.batches < enough) throw new Error(`It ended after ${last?.batches ?? 0} batches.`);
  const seconds = (performance.now() - began) / 1000;
  const found = await driver.read(plan);

  const liveMegabytes = Math.min(last.batches / BATCHES_PER_MEGABYTE, plan.keysMegabytes);
  const most = (of: (one: TurnReport) => number): number => Math.max(...reports.map(of));
  const diskMegabytes = most(({ diskBytes }) => diskBytes) / 1e6;
  const wasmBytes = most((one) => one.wasmBytes);
  console.log(
    `${name}: ${last.batches / BATCHES_PER_MEGABYTE} MB in ${seconds.toFixed(1)} s, ${liveMegabytes} MB of them live; on disk at most ` +
      `${diskMegabytes.toFixed(0)} MB, in the end ${(last.diskBytes / 1e6).toFixed(0)} MB, in ${most((one) => one.tables)} tables at most; ` +
      `engine ${(wasmBytes / 2 ** 20).toFixed(1)} MiB of memory; opened again in ${found.openMs.toFixed(0)} ms (${found.state})`,
  );
  expect(found.faults).toEqual([]);
  expect(found.batches).toBeGreaterThanOrEqual(last.batches);
  const wasmBytesMax = plan.memoryBytes * (1 + LOST_SHARE) + ENGINE_BYTES + liveMegabytes * 1e6 * TABLE_SHARE;
  expect(wasmBytes).toBeLessThan(wasmBytesMax);
  expect(diskMegabytes).toBeLessThan(liveMegabytes * 2 + DISK_MEGABYTES);
}
