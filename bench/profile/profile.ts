/** Samples a browser while something runs in it, and writes a `.cpuprofile` file for each thread that was at work. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { summary } from './summary.ts';
import { PROFILER_CATEGORY, profilesOf } from './trace.ts';

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
  const threads = profilesOf(trace.toString());
  mkdirSync(folder, { recursive: true });
  const files = threads.map(({ name, profile }, at) => {
    const file = join(folder, `${String(at + 1).padStart(2, '0')}-${name.replaceAll(/[^\w-]+/g, '-')}.cpuprofile`);
    writeFileSync(file, JSON.stringify(profile));
    return file;
  });
  return { result, files, text: ['## Where the time went', ...threads.map(summary)].join('\n\n') };
}
