/**
 * The suite `micro` in the browser: nanoseconds an operation, in memory, of the wasm build as it ships. Bytes and allocations
 * of the core are told by the native bench alone (`npm run bench:native -- micro`): wasm has nothing to count them with.
 */

import { GROUP_STEPS, now, timerStepMs, turn } from '../../core/clock.ts';
import { Latencies } from '../../core/latency.ts';
import type { Round } from '../../core/measure.ts';
import { budgetMs } from '../../core/plan.ts';
import { makeRow } from '../../core/rows.ts';
import type { SpecialContext } from '../../core/special.ts';
import { BURST, ROWS, Subject } from './rows.ts';

/** Steps of progress. */
export const STEPS = ROWS.length;

/** Runs the rows, one after another. */
export async function runMicro({ plan, step, emit }: SpecialContext): Promise<void> {
  const bursts_min = Math.max(1, Math.ceil((GROUP_STEPS * timerStepMs() * 1e6) / (BURST * 100)));
  for (const row of ROWS) {
    step(row.title);
    const subject = await Subject.make(row);
    try {
      await roundOf(subject, 1, 0);
      const rounds: Round[] = [];
      for (let round = 0; round < plan.rounds; round++)
        rounds.push(await roundOf(subject, bursts_min, budgetMs(plan) / 4));
      const made = makeRow(
        {
          suite: 'micro',
          engine: 'varve-sync',
          role: 'varve',
          access: 'worker',
          durability: 'memory',
          unit: 'ops',
          groupSize: BURST * bursts_min,
          phase: row.title,
        },
        rounds,
        true,
      );
      const ns = Math.round(1e9 / made.opsPerSecond);
      emit({ type: 'row', row: { ...made, note: `${ns} ns/op in memory; published, native: ${row.published} ns` } });
    } finally {
      await subject.close();
    }
  }
}

/** Bursts until the time is up. A get that finds nothing throws, so what is counted was found. */
async function roundOf(subject: Subject, bursts: number, budget_ms: number): Promise<Round> {
  const tally = { ops: 0, bytes: 0, reads: 0, hits: 0, wrong: 0 };
  const latencies = new Latencies();
  let elapsed = 0;
  do {
    const start = now();
    for (let burst = 0; burst < bursts; burst++) subject.burst();
    const took = now() - start;
    elapsed += took;
    latencies.add((took * 1000) / (bursts * BURST));
    tally.ops += bursts * BURST;
    tally.bytes += bursts * BURST * (16 + subject.row.valueBytes);
    const left = now();
    await turn();
    elapsed += now() - left;
  } while (elapsed < budget_ms);
  return { tally, elapsed_ms: elapsed, latencies, timeline: [[elapsed, tally.ops]] };
}
