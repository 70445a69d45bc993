/**
 * Steps a flush or compaction to its end, in slices of a few milliseconds. Its input is fetched and its output is written
 * between steps.
 *
 * Invariant: no call into the engine lasts longer than a slice, because a realm inside a call does nothing else and cannot
 * be stopped.
 */

import { VarveError } from '../errors.ts';
import type { CompactionJob, JobStep } from '../wasm/job.ts';

/** Entries handled by one step: about a millisecond. */
const STEP_ENTRIES = 2000;
const SLICE_MS = 8;

/** The callbacks that a job works with. Offsets and sizes are in bytes of the table. */
interface JobHands {
  input(table: number, offset: number, length: number): Promise<Uint8Array>;
  /** The job is about to fail, because this input is damaged. */
  damaged(table: number): void;
  write(table: number, offset: number, bytes: Uint8Array): Promise<void>;
  /** A table is complete: flushes it. */
  finish(table: number, size: number): void;
  /** Lets other work in. */
  rest(): Promise<void>;
}

/** Runs a job until it is done. */
export async function driveJob(job: CompactionJob, hands: JobHands): Promise<void> {
  let sliceEnd = performance.now() + SLICE_MS;
  for (;;) {
    const { kind, table, offset, length } = step(job, hands);
    switch (kind) {
      case 'working':
        break;
      case 'need':
        job.feed(await hands.input(table, offset, length));
        break;
      case 'write':
        await hands.write(table, offset, job.output());
        break;
      case 'finished':
        hands.finish(table, offset);
        break;
      case 'done':
        return;
      default:
        throw new VarveError('VARVE_INTERNAL', 'The engine answered with a step this code does not know.');
    }
    if (performance.now() < sliceEnd) continue;
    await hands.rest();
    sliceEnd = performance.now() + SLICE_MS;
  }
}

function step(job: CompactionJob, hands: JobHands): JobStep {
  try {
    return job.step(STEP_ENTRIES);
  } catch (error) {
    const { damaged } = job;
    if (damaged > 0) hands.damaged(damaged);
    throw error;
  }
}
