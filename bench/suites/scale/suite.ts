/**
 * The suite `scale` among the others: the phases of `npm run bench -- scale` as rows. 2 million pairs of 32 + 32 bytes, or as
 * many as `--entries` or `--scale` say (S2 of the workloads has 2, 4, 10 and 30 million).
 */

import { Latencies } from '../../core/latency.ts';
import { makeRow } from '../../core/rows.ts';
import type { SpecialContext } from '../../core/special.ts';
import { PAIR_BYTES } from './pairs.ts';
import { runScale } from './phases.ts';

const PAIRS = { quick: 20_000, full: 2_000_000 };

/** Runs the phases, which end with an error where anything was found that was not written. */
export async function runScaleSuite({ plan, emit, step, signal }: SpecialContext): Promise<void> {
  const pairs = plan.custom.entries ?? Math.round(PAIRS[plan.mode] * plan.scale);
  step(`${pairs} pairs`);
  await runScale({ pairs }, (event) => {
    signal.throwIfAborted();
    if (event.type === 'progress') step(event.text);
    // Phases that are no operations (memory, background work) are in the table of `npm run bench -- scale`.
    if (event.type !== 'row' || event.row.ops === 0 || event.row.seconds === 0) return;
    const { phase, ops, seconds, more } = event.row;
    const latencies = new Latencies();
    latencies.add((seconds * 1e6) / ops);
    const tally = { ops, bytes: ops * PAIR_BYTES, reads: 0, hits: 0, wrong: 0 };
    const round = { tally, elapsed_ms: seconds * 1000, latencies, timeline: [[seconds * 1000, ops]] as const };
    const notes = Object.entries(more).map(([name, figure]) => `${name.replaceAll('_', ' ')} ${figure}`);
    emit({
      type: 'row',
      row: makeRow(
        {
          suite: 'scale',
          engine: 'varve-sync',
          role: 'varve',
          access: 'worker',
          durability: 'relaxed',
          unit: 'ops',
          // A phase is timed as a whole: the percentiles are its mean.
          groupSize: ops,
          phase: `${phase}, ${pairs} pairs`,
          ...(notes.length > 0 && { note: notes.join(', ') }),
        },
        [round],
        true,
      ),
    });
  });
}
