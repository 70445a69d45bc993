/**
 * One run of a plan in a browser of its own: the page is opened with the plan in its address, and what it tells is printed.
 *
 * Invariant: every run begins with a new browser and a new profile, so that no run sees what another has left.
 */

import type { Page } from 'playwright';
import { rate } from '../../core/figures.ts';
import { paramsOf } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';
import type { Result } from '../../core/report.ts';
import type { Row } from '../../core/rows.ts';
import { failoverLine } from '../../suites/tabs/report.ts';
import type { PageEvent } from '../../ui/page.ts';
import { ProcessorClock, type ProcessorTime } from './processor.ts';
import { profiled } from './profile/profile.ts';
import { ProgressLine } from './progress.ts';
import { drive, inBrowser } from './session.ts';
import { offerTabs } from './tabs.ts';

/** How a run is made. */
export interface RunOptions {
  readonly headed: boolean;
  /** The folder for CPU profiles; none are taken without it. */
  readonly profile: string | undefined;
  /** The folder of the built pages; that of `npm run build` unless told. */
  readonly site?: string | undefined;
}

/** What a run came to. */
export interface Run {
  readonly result: Result;
  /** The report in Markdown. */
  readonly markdown: string;
  readonly processor: readonly ProcessorTime[];
  /** A signal ended it early. */
  readonly wasCancelled: boolean;
}

/** Runs a plan. */
export function runPlanInBrowser(plan: Plan, { headed, profile, site }: RunOptions): Promise<Run> {
  let wasCancelled = false;
  // As a person does: what was measured until then is the result, and a problem says that it was cancelled.
  const cancel = (page: Page): void => {
    wasCancelled = true;
    page.click('#cancel').catch(({ message }: Error) => console.error(`The run could not be cancelled: ${message}`));
  };
  return inBrowser({ headed, site, cancel }, async (page, origin) => {
    await offerTabs(page);
    const clock = await ProcessorClock.start(page);
    const progress = new ProgressLine();
    const work = (): Promise<Ended> =>
      drive<PageEvent, Ended>(page, addressOf(origin, plan), (event) => hear(event, clock, progress));
    const sampled = profile === undefined ? undefined : await profiled(page, profile, work);
    const { result, markdown } = sampled?.result ?? (await work());
    if (sampled !== undefined) console.log(`\nWrote ${sampled.files.join('\n      ')}`);
    const parts = sampled === undefined ? [markdown] : [markdown, sampled.text, ''];
    return { result, markdown: parts.join('\n'), processor: (await clock?.settled()) ?? [], wasCancelled };
  });
}

type Ended = Extract<PageEvent, { readonly type: 'ended' }>;

/** The address of the page that runs the plan at once. */
function addressOf(origin: string, plan: Plan): string {
  const params = paramsOf(plan);
  params.set('mode', plan.mode);
  params.set('auto', '');
  return `${origin}/bench/?${params}`;
}

/** Prints what the page tells; answers with its end. */
function hear(event: PageEvent, clock: ProcessorClock | undefined, progress: ProgressLine): Ended | undefined {
  if (event.type === 'progress') progress.tell(`${event.done}/${event.total} ${event.text}`);
  else progress.rest();
  if (event.type === 'row') {
    console.log(`  ${lineOf(event.row)}`);
    clock?.ended(event.row.suite, event.row.access);
  }
  if (event.type === 'failover') console.log(`  ${failoverLine(event.failover)}`);
  if (event.type === 'problem') console.log(`  ! ${event.text}`);
  return event.type === 'ended' ? event : undefined;
}

function lineOf(row: Row): string {
  const { tabs, phase } = row;
  const who = tabs === undefined ? '' : `, ${tabs.count} tabs, ${tabs.role} ${tabs.call}`;
  const part = phase === undefined ? '' : `, ${phase}`;
  const name = `${row.suite}${part} (${row.access}${who}) ${row.engine}`;
  const width = tabs === undefined && phase === undefined ? 46 : 60;
  return `${name.padEnd(width)} ${rate(row.opsPerSecond).padStart(7)} ${row.unit}/s${row.verified ? '' : '  NOT VERIFIED'}`;
}
