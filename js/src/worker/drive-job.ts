/**
 * Stepping a flush or compaction to its end: in slices of a few milliseconds, its input fetched and its output written
 * between steps.
 *
 * Invariant: no call into the engine lasts longer than a slice, because a realm inside a call does nothing else and cannot
 * be stopped.
 */

import { VarveError } from '../errors.ts';
import { type CompactionJob, JobStep } from '../wasm/exports.ts';

/** Entries handled by one step: about a millisecond. */
const STEP_ENTRIES = 2000;
const SLICE_MS = 8;

/** What a job works with. Offsets and sizes are in bytes of the table. */
export interface JobHands {
  input(table: number, offset: number, length: number): Promise<Uint8Array>;
  write(table: number, offset: number, bytes: Uint8Array): Promise<void>;
  /** A table is complete: it is flushed. */
  finish(table: number, size: number): void;
  /** Lets other work in. */
  rest(): Promise<void>;
}

/** Runs a job until it is done. */
export async function driveJob(job: CompactionJob, hands: JobHands): Promise<void> {
  let sliceEnd = performance.now() + SLICE_MS;
  for (;;) {
    switch (job.step(STEP_ENTRIES)) {
      case JobStep.working:
        break;
      case JobStep.need: {
        const [table = 0, offset = 0, length = 0] = Array.from(job.need());
        job.feed(await hands.input(table, offset, length));
        break;
      }
      case JobStep.write:
        await hands.write(job.output_table(), job.output_offset(), job.output());
        break;
      case JobStep.finished:
        hands.finish(job.output_table(), job.output_offset());
        break;
      case JobStep.done:
        return;
      default:
        throw new VarveError('VARVE_INTERNAL', 'The engine answered with a step this code does not know.');
    }
    if (performance.now() < sliceEnd) continue;
    await hands.rest();
    sliceEnd = performance.now() + SLICE_MS;
  }
}
