/**
 * One run of the page: first the worker's part, then the page's own, then that of several tabs, gathered into one result.
 *
 * Invariant: no two parts ever run at the same time, and the worker is gone when the run ends, however it ends.
 */

import { timerStepMs } from '../../core/clock.ts';
import type { Access } from '../../core/engine.ts';
import type { Emit, Plan, RunEvent } from '../../core/plan.ts';
import type { Environment, Result } from '../../core/report.ts';
import { SuiteRunner, stepsOf } from '../../core/runner.ts';
import { DOCUMENT_SUITE, TAB_SUITE } from '../../core/workloads.ts';
import { ENGINES } from '../../peers/list.ts';
import { runDocuments } from '../../suites/documents/suite.ts';
import { runTabSuite } from '../../suites/tabs/suite.ts';
import type { FromBenchWorker, ToBenchWorker } from './bench-worker.ts';

const IN_WORKER: readonly Access[] = ['worker'];
const FROM_PAGE: readonly Access[] = ['page', 'inflight'];

/** What this page runs on. */
export function environmentOf(quick: boolean): Environment {
  return {
    date: new Date().toISOString(),
    userAgent: navigator.userAgent,
    cores: navigator.hardwareConcurrency,
    timerStepMicroseconds: Math.round(timerStepMs() * 1000),
    crossOriginIsolated,
    quick,
  };
}

/** Runs a plan. What was measured until it was cancelled is still its result. */
export async function runPlan(plan: Plan, emit: Emit, signal: AbortSignal): Promise<Result> {
  const environment = environmentOf(plan.mode === 'quick');
  const rows: Result['rows'][number][] = [];
  const storage: Result['storage'][number][] = [];
  const failovers: Result['failovers'][number][] = [];
  const notes: string[] = [];
  const problems: string[] = [];
  const engines = ENGINES.filter(({ name }) => plan.engines.includes(name));
  const inWorker = stepsOf(plan, engines, IN_WORKER);
  const total = inWorker + stepsOf(plan, engines, FROM_PAGE);
  const gather = (before: number) => (event: RunEvent) => {
    if (event.type === 'row') rows.push(event.row);
    if (event.type === 'storage') storage.push(event.storage);
    if (event.type === 'failover') failovers.push(event.failover);
    if (event.type === 'note') notes.push(event.text);
    if (event.type === 'problem') problems.push(event.text);
    emit(event.type === 'progress' ? { ...event, done: before + event.done, total } : event);
  };
  // The tabs tell their own progress: how far they are by themselves.
  const tell = (event: RunEvent): void => (event.type === 'progress' ? emit(event) : gather(0)(event));
  try {
    if (inWorker > 0) await runInWorker(plan, gather(0), signal);
    if (total > inWorker) await new SuiteRunner(plan, ENGINES, gather(inWorker), signal).run(FROM_PAGE);
    if (plan.suites.includes(DOCUMENT_SUITE.name)) await runDocuments(plan, tell, signal);
    if (plan.suites.includes(TAB_SUITE.name)) await runTabSuite(plan, tell, signal);
  } catch (error) {
    gather(0)({ type: 'problem', text: error instanceof Error ? error.message : String(error) });
  }
  return { environment, plan, rows, failovers, storage, notes, problems };
}

function runInWorker(plan: Plan, emit: Emit, signal: AbortSignal): Promise<void> {
  const worker = new Worker(new URL('./bench-worker.js', import.meta.url), { type: 'module', name: 'bench' });
  const post = (message: ToBenchWorker): void => worker.postMessage(message);
  const cancel = (): void => post({ type: 'cancel' });
  return new Promise<void>((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(`The worker of the benchmark failed: ${event.message}`));
    worker.onmessage = ({ data }: MessageEvent<FromBenchWorker>) => {
      if (data.type !== 'ended') emit(data);
      else if (data.error === undefined) resolve();
      else reject(new Error(data.error));
    };
    signal.addEventListener('abort', cancel, { once: true });
    post({ type: 'run', plan });
  }).finally(() => {
    signal.removeEventListener('abort', cancel);
    worker.terminate();
  });
}
