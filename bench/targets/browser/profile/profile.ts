/** Samples a browser while something runs in it, and writes a `.cpuprofile` file for each thread that was at work, the busiest first. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { busyOf, summary } from './summary.ts';
import { PROFILER_CATEGORY, profilesOf } from './trace.ts';

/** Threads that took less of all the work are left out: each store of a run has a worker of its own. */
const SHARE_MIN = 0.01;

/** What came of sampling. */
export interface Sampled<T> {
  readonly result: T;
  /** The files that were written. */
  readonly files: readonly string[];
  /** Where the time went, thread by thread, in Markdown. */
  readonly text: string;
}

/** Runs `work` while all threads of the page's process are sampled; the files go into `folder`, which is made. */
export async function profiled<T>(page: Page, folder: string, work: () => Promise<T>): Promise<Sampled<T>> {
  const browser = page.context().browser();
  if (browser === null) throw new Error('This browser cannot be profiled: it tells no traces.');
  await browser.startTracing(page, { categories: ['-*', '__metadata', PROFILER_CATEGORY] });
  let trace: Buffer | undefined;
  let result: T;
  try {
    result = await work();
  } finally {
    trace = await browser.stopTracing();
  }
  const all = profilesOf(trace.toString()).map((thread) => ({ ...thread, busy_ms: busyOf(thread) }));
  const total_ms = all.reduce((sum, { busy_ms }) => sum + busy_ms, 0);
  const threads = all.filter(({ busy_ms }) => busy_ms > total_ms * SHARE_MIN).sort((a, b) => b.busy_ms - a.busy_ms);
  mkdirSync(folder, { recursive: true });
  const files = threads.map(({ name, profile }, at) => {
    const file = join(folder, `${String(at + 1).padStart(2, '0')}-${name.replaceAll(/[^\w-]+/g, '-')}.cpuprofile`);
    writeFileSync(file, JSON.stringify(profile));
    return file;
  });
  return { result, files, text: ['## Where the time went', ...threads.map(summary)].join('\n\n') };
}
