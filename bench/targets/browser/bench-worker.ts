/** The worker of the benchmark page: runs what a plan asks for inside a worker, and reports as the page does. */

import type { Plan, RunEvent } from '../../core/plan.ts';
import { runSuites } from '../../core/runner.ts';
import { ENGINES } from '../../peers/all.ts';
import '../../suites/all.ts';

/** To the worker: a plan to run, or the end of the run. */
export type ToBenchWorker = { readonly type: 'run'; readonly plan: Plan } | { readonly type: 'cancel' };
/** From the worker: what a run reports, then its end. */
export type FromBenchWorker = RunEvent | { readonly type: 'ended'; readonly error: string | undefined };

const scope = self as unknown as DedicatedWorkerGlobalScope;
const cancel = new AbortController();
const post = (message: FromBenchWorker): void => scope.postMessage(message);

scope.onmessage = ({ data }: MessageEvent<ToBenchWorker>) => {
  if (data.type === 'cancel') {
    cancel.abort(new DOMException('The run was cancelled.', 'AbortError'));
    return;
  }
  runSuites(data.plan, { engines: ENGINES, accesses: ['worker'], emit: post, signal: cancel.signal }).then(
    () => post({ type: 'ended', error: undefined }),
    (error: unknown) => post({ type: 'ended', error: error instanceof Error ? error.message : String(error) }),
  );
};
