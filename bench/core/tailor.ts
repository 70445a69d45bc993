/**
 * A suite as a plan wants it: its counts by mode and scale, and whatever the plan sets in place of the suite's own.
 *
 * Invariant: pure. What a plan does not name stays as the suite says, so that a row is what its suite's name promises
 * unless the plan, which every result carries, says otherwise.
 */

import type { Order } from './draw.ts';
import type { Plan } from './plan.ts';
import type { Count, Suite, Work } from './workloads.ts';

/** A suite with its counts decided. */
export interface Tailored {
  readonly suite: Suite;
  /** Keys that are loaded (or written, by suites that begin with a new store). */
  readonly entries: number;
  /** Keys for inserts, behind those. */
  readonly reserve: number;
  readonly calls: number;
  /** Characters of a string key; undefined: as the generator makes them. */
  readonly keyBytes: number | undefined;
}

/** The suite as the plan wants it. */
export function tailored(suite: Suite, plan: Plan): Tailored {
  const { custom, mode, scale } = plan;
  const work = workOf(suite.work, plan);
  const scaled = (count: Count): number => Math.max(1, Math.round(count[mode] * scale));
  const calls = callsOf(suite, plan, scaled);
  // Counts of calls alone also bound what suites write into new stores, so that their loads stay as small.
  const fewer = suite.fresh && custom.calls !== undefined ? custom.calls : undefined;
  return {
    suite: {
      ...suite,
      work,
      keys: custom.keyKind ?? suite.keys,
      valueBytes: custom.valueBytes ?? suite.valueBytes,
      durability: suite.phase === undefined ? (custom.durability ?? suite.durability) : suite.durability,
    },
    entries: custom.entries ?? fewer ?? scaled(suite.entries),
    reserve: suite.reserve === undefined ? 0 : scaled(suite.reserve),
    calls,
    keyBytes: custom.keyBytes,
  };
}

function callsOf(suite: Suite, { custom, mode }: Plan, scaled: (count: Count) => number): number {
  const { work } = suite;
  // These are as many as they are: of a scan and of an opening each call is long.
  if (work.kind === 'scan' || work.kind === 'open') return suite.calls[mode];
  if (custom.calls === undefined) return scaled(suite.calls);
  return work.kind === 'batches' || work.kind === 'reads' ? Math.ceil(custom.calls / work.size) : custom.calls;
}

function workOf(work: Work, { custom }: Plan): Work {
  const order: Order | undefined = custom.distribution;
  if (work.kind === 'mix') return order === undefined || order === 'sequential' ? work : { ...work, order };
  if (work.kind !== 'points') return work;
  const { mix } = work;
  const reads = custom.readRatio;
  return {
    ...work,
    order: order ?? work.order,
    mix: typeof mix === 'object' && reads !== undefined ? { ...mix, reads } : mix,
  };
}
