/**
 * Runs the suites of a plan in the thread it is called in: a worker for the access `worker`, the page for the others, or Node.
 *
 * Invariant: a suite that fails is a problem of the result, and the others go on. Stores are removed at the end, also when
 * the run is cancelled.
 */

import type { Access, Engine } from './engine.ts';
import type { Emit, Plan } from './plan.ts';
import { Stages } from './stage.ts';
import { explain, type Suite, suites } from './suite.ts';

function pairsOf(plan: Plan, accesses: readonly Access[]): (readonly [Suite, Access])[] {
  return suites()
    .filter(({ name }) => plan.suites.includes(name))
    .flatMap((suite) =>
      accesses
        .filter((access) => plan.accesses.includes(access) && suite.accesses.includes(access))
        .map((access) => [suite, access] as const),
    );
}

export function stepsOf(plan: Plan, engines: readonly Engine[], accesses: readonly Access[]): number {
  return pairsOf(plan, accesses).reduce((steps, [suite, access]) => steps + suite.steps(plan, engines, access), 0);
}

export interface RunOptions {
  readonly engines: readonly Engine[];
  readonly accesses: readonly Access[];
  readonly emit: Emit;
  readonly signal: AbortSignal;
  readonly place?: string;
}

export async function runSuites(plan: Plan, { engines: all, accesses, emit, signal, place }: RunOptions) {
  const engines = all.filter(({ name }) => plan.engines.includes(name));
  const total = stepsOf(plan, engines, accesses);
  let done = 0;
  const stages = new Stages(plan, emit);
  try {
    for (const [suite, access] of pairsOf(plan, accesses)) {
      signal.throwIfAborted();
      const steps = suite.steps(plan, engines, access);
      if (steps === 0) continue;
      const end = done + steps;
      const say = (text: string): void => {
        signal.throwIfAborted();
        emit({ type: 'progress', done: Math.min(done, end), total, text });
      };
      const step = (text: string): void => {
        say(text);
        done++;
      };
      try {
        await suite.run({ plan, engines, access, place: place ?? access, emit, signal, step, say, stages });
      } catch (error) {
        signal.throwIfAborted();
        emit({ type: 'problem', text: `${suite.name} (${place ?? access}): ${explain(error)}` });
      }
      done = end;
    }
  } finally {
    await stages.release();
  }
}
