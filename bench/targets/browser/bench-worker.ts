/**
 * The worker of the benchmark page: runs what a plan asks for inside a worker, and reports as the page does.
 */

import type { Plan, RunEvent } from '../../core/plan.ts';
import { SuiteRunner } from '../../core/runner.ts';
import { ENGINES } from '../../peers/list.ts';

/** To the worker: a plan to run, or the end of the run. */
export type ToBenchWorker = { readonly type: 'run'; readonly plan: Plan } | { readonly type: 'cancel' };
/** From the worker: what a run reports, then its end. */
export type FromBenchWorker = RunEvent | { readonly type: 'ended'; readonly error: string | undefined };

const scope = self as unknown as DedicatedWorkerGlobalScope;
const cancel = new AbortController();

function post(message: FromBenchWorker): void {
  scope.postMessage(message);
}

async function run(plan: Plan): Promise<void> {
  try {
    await new SuiteRunner(plan, ENGINES, post, cancel.signal).run(['worker']);
    post({ type: 'ended', error: undefined });
  } catch (error) {
    post({ type: 'ended', error: error instanceof Error ? error.message : String(error) });
  }
}

scope.onmessage = ({ data }: MessageEvent<ToBenchWorker>) => {
  if (data.type === 'cancel') cancel.abort(new DOMException('The run was cancelled.', 'AbortError'));
  else void run(data.plan);
};
