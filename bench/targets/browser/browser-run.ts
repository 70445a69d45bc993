/**
 * One run of a plan in a browser of its own: the page is opened with the plan in its address, and its events are printed.
 *
 * Invariant: every run begins with a new browser and a new profile, so that no run sees what another has left.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { CLOSURES, sizesOf } from '../../../scripts/sizes.mjs';
import { paramsOf } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';
import type { Result } from '../../core/result.ts';
import { type Provenance, printer, provenance } from '../command.ts';
import type { PageEvent } from './run.ts';
import { drive, inBrowser, SITE } from './session.ts';
import { offerTabs } from './tabs.ts';

export interface RunOptions {
  readonly profile: string | undefined;
  /** The folder of the built pages. Default: that of `npm run build`. */
  readonly site?: string | undefined;
}

/** Sizes after gzip, in bytes, of what a page loads, each with all that it loads at once. */
export interface Sizes {
  readonly wasm: number;
  readonly client: number;
  readonly sync: number;
}

/** A run as `--json` writes it: with everything that a reader must know about where it was made. */
export interface SavedRun extends Result, Provenance {
  readonly sizes: Sizes;
}

export interface Run {
  readonly saved: SavedRun;
  readonly markdown: string;
  readonly wasCancelled: boolean;
}

type Ended = Extract<PageEvent, { readonly type: 'ended' }>;

export function runPlanInBrowser(plan: Plan, { profile, site = SITE }: RunOptions): Promise<Run> {
  let wasCancelled = false;
  // As a person does: the result is what was measured until then, and a problem says that it was cancelled.
  const cancel = (page: Page): void => {
    wasCancelled = true;
    page.click('#cancel').catch(({ message }: Error) => console.error(`The run could not be cancelled: ${message}`));
  };
  return inBrowser({ site, cancel }, async (page, origin) => {
    await offerTabs(page);
    const params = paramsOf(plan);
    params.set('mode', plan.mode);
    params.set('auto', '');
    const print = printer();
    const take = (event: PageEvent): Ended | undefined => {
      if (event.type === 'ended') return event;
      print(event);
      return undefined;
    };
    const work = (): Promise<Ended> => drive<PageEvent, Ended>(page, `${origin}/bench/?${params}`, take);
    const { result, markdown } = profile === undefined ? await work() : await traced(page, profile, work);
    const saved = { ...result, ...provenance(), sizes: packageSizes(site) };
    return { saved, markdown, wasCancelled };
  });
}

/** Samples all threads of the browser while something runs in it, workers that end meanwhile included. */
async function traced<T>(page: Page, folder: string, work: () => Promise<T>): Promise<T> {
  const browser = page.context().browser();
  if (browser === null) throw new Error('This browser cannot be profiled: it has no traces.');
  const categories = ['-*', '__metadata', 'devtools.timeline', 'v8.execute', 'disabled-by-default-v8.cpu_profiler'];
  await browser.startTracing(page, { categories });
  try {
    return await work();
  } finally {
    mkdirSync(folder, { recursive: true });
    const file = join(folder, 'trace.json');
    writeFileSync(file, await browser.stopTracing());
    console.log(`\nWrote ${file}: open it in DevTools (Performance, load profile), Perfetto or speedscope.`);
  }
}

function packageSizes(site: string): Sizes {
  const sizes = sizesOf(join(site, 'varve'), JSON.parse(readFileSync(CLOSURES, 'utf8')));
  const gzip = (file: string): number => sizes.find(({ name }) => name === file)?.gzip ?? Number.NaN;
  return { wasm: gzip('varve.wasm'), client: gzip('index.js'), sync: gzip('synchronous.js') };
}
