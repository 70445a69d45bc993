/** The worker of the benchmark page: runs the part of a plan that belongs inside a worker, and reports as the page does. */

import { createBirpc } from 'birpc';
import type { Emit, Plan } from '../../core/plan.ts';
import { runSuites } from '../../core/runner.ts';
import { ENGINES } from '../../peers/all.ts';
import { overPort } from '../../peers/remote.ts';
import '../../suites/all.ts';

const cancelled = new AbortController();

const calls = {
  run: (plan: Plan): Promise<void> => {
    const emit: Emit = (event) => void page.emit.asEvent(event);
    return runSuites(plan, { engines: ENGINES, accesses: ['worker'], emit, signal: cancelled.signal });
  },
  cancel: (): void => cancelled.abort(new DOMException('The run was cancelled.', 'AbortError')),
};

export type BenchWorker = typeof calls;

const page = createBirpc<{ emit: Emit }, BenchWorker>(calls, overPort(self as unknown as DedicatedWorkerGlobalScope));
