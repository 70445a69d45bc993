/**
 * Suites that are no loop of one kind of call: they make their rows themselves.
 *
 * Invariant: each checks what it reads as strictly as the others do, and lets go of its stores however it ends.
 */

import type { Access, Engine } from './engine.ts';
import type { Emit, Plan } from './plan.ts';
import type { Choice } from './workloads.ts';

/** What such a suite is given. */
export interface SpecialContext {
  readonly plan: Plan;
  /** The engines of the plan. */
  readonly engines: readonly Engine[];
  readonly access: Access;
  readonly emit: Emit;
  readonly signal: AbortSignal;
  /** Tells one step of progress; throws when the run was cancelled. */
  readonly step: (text: string) => void;
}

export interface Special extends Choice {
  readonly accesses: readonly Access[];
  /** How many steps of progress it tells. */
  readonly steps: (plan: Plan, engines: readonly Engine[], access: Access) => number;
  readonly run: (context: SpecialContext) => Promise<void>;
}

/** In the order in which they run, behind the others. */
export const SPECIALS: readonly Special[] = [];
