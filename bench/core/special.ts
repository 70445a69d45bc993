/**
 * Suites that are no loop of one kind of call: they make their rows themselves.
 *
 * Invariant: each checks what it reads as strictly as the others do, and lets go of its stores however it ends.
 */

import { type Callers, CONCURRENT, callable, READ_WHILE_WRITING, runCallers } from '../suites/callers/suite.ts';
import { STEPS as COMPACTION_STEPS, runCompaction } from '../suites/compaction/suite.ts';
import { LIFE_SUITES } from '../suites/lives/suite.ts';
import { STEPS as MICRO_STEPS, runMicro } from '../suites/micro/suite.ts';
import { runScaleSuite } from '../suites/scale/suite.ts';
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
export const SPECIALS: readonly Special[] = [
  {
    name: 'compaction',
    title: 'before and after a full compaction',
    family: 'S0',
    quick: false,
    accesses: ['worker'],
    steps: (_, engines) => (hasSync(engines) ? COMPACTION_STEPS : 0),
    run: (context) => runCompaction(context),
  },
  {
    name: 'micro',
    title: 'single operations in memory, wasm',
    family: 'S3',
    quick: false,
    accesses: ['worker'],
    steps: (_, engines) => (hasSync(engines) ? MICRO_STEPS : 0),
    run: runMicro,
  },
  {
    name: 'scale',
    title: '2 million pairs in the worker, phase by phase (--entries or --scale for more)',
    family: 'S2',
    quick: false,
    asked: true,
    accesses: ['worker'],
    steps: (_, engines) => (hasSync(engines) ? 1 : 0),
    run: runScaleSuite,
  },
  ofCallers(CONCURRENT, '2 writers and 10 readers at once, from the page', 'S2'),
  ofCallers(READ_WHILE_WRITING, '4 readers beside a writer, from the page', 'beyond'),
  ...LIFE_SUITES,
];

function hasSync(engines: readonly Engine[]): boolean {
  return engines.some(({ name }) => name === 'varve-sync');
}

function ofCallers(callers: Callers, title: string, family: Special['family']): Special {
  return {
    name: callers.suite,
    title,
    family,
    quick: false,
    accesses: ['page'],
    steps: (plan, engines) => callable(engines).length * (plan.rounds + 1),
    run: (context) => runCallers(context, callers),
  };
}
