/**
 * One run of the page: first the worker's part, then the page's own, gathered into one result.
 *
 * Invariant: no two parts ever run at the same time, and the worker is gone when the run ends, however it ends.
 */

import { createBirpc } from 'birpc';
import { timerStepMs } from '../../core/clock.ts';
import type { Access } from '../../core/engine.ts';
import type { Emit, Plan, RunEvent } from '../../core/plan.ts';
import { type Environment, Gathered, type Result } from '../../core/result.ts';
import { runSuites, stepsOf } from '../../core/runner.ts';
import { ENGINES } from '../../peers/all.ts';
import { overPort } from '../../peers/remote.ts';
import '../../suites/browser.ts';
import type { BenchWorker } from './bench-worker.ts';

/** Events of a run, and its end. */
export type PageEvent = RunEvent | { readonly type: 'ended'; readonly result: Result; readonly markdown: string };

const IN_WORKER: readonly Access[] = ['worker'];
const FROM_PAGE: readonly Access[] = ['page', 'inflight'];

export function environment(): Environment {
  return {
    date: new Date().toISOString(),
    userAgent: navigator.userAgent,
    cores: navigator.hardwareConcurrency,
    timerStepMicroseconds: Math.round(timerStepMs() * 1000),
    crossOriginIsolated,
  };
}

/** Runs a plan. A run that was cancelled has the result of what was measured until then. */
export async function runPlan(plan: Plan, emit: Emit, signal: AbortSignal): Promise<Result> {
  const gathered = new Gathered();
  const engines = ENGINES.filter(({ name }) => plan.engines.includes(name));
  const inWorker = stepsOf(plan, engines, IN_WORKER);
  const total = inWorker + stepsOf(plan, engines, FROM_PAGE);
  const after = (before: number) => (event: RunEvent) => {
    gathered.take(event);
    emit(event.type === 'progress' ? { ...event, done: before + event.done, total } : event);
  };
  const where = environment();
  try {
    if (inWorker > 0) await runInWorker(plan, after(0), signal);
    if (total > inWorker) {
      await runSuites(plan, { engines: ENGINES, accesses: FROM_PAGE, emit: after(inWorker), signal });
    }
  } catch (error) {
    after(0)({ type: 'problem', text: error instanceof Error ? error.message : String(error) });
  }
  return { environment: where, plan, ...gathered };
}

async function runInWorker(plan: Plan, emit: Emit, signal: AbortSignal): Promise<void> {
  const worker = new Worker(new URL('./bench-worker.js', import.meta.url), { type: 'module', name: 'bench' });
  const calls = createBirpc<BenchWorker, { emit: Emit }>({ emit }, overPort(worker));
  const cancel = (): void => void calls.cancel.asEvent();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    await new Promise((resolve, reject) => {
      worker.onerror = ({ message }) => reject(new Error(`The worker of the benchmark failed: ${message}`));
      calls.run(plan).then(resolve, reject);
    });
  } finally {
    signal.removeEventListener('abort', cancel);
    worker.terminate();
  }
}
