/**
 * The benchmark page. A person chooses and presses Run; the command line opens it with `?auto` and listens to the
 * events through a function that it puts on the window.
 *
 * Invariant: a run that the command line drives draws nothing, keeps nothing and has no service worker: it measures what
 * `varve` does and nothing else.
 */

import { duration } from '../core/figures.ts';
import { planFrom } from '../core/options.ts';
import type { Plan, RunEvent } from '../core/plan.ts';
import { markdown, type Result } from '../core/report.ts';
import type { Row } from '../core/rows.ts';
import { ENGINES } from '../peers/list.ts';
import { environmentOf, runPlan } from '../targets/browser/run.ts';
import { CompareView } from './compare-view.ts';
import { Controls } from './controls.ts';
import { announce, byId, copyText } from './dom.ts';
import { offerExports } from './exports.ts';
import { comparedWith, planText } from './intro.ts';
import { LiveCharts } from './live-charts.ts';
import { offerOffline } from './offline.ts';
import { Progress } from './progress.ts';
import { ResultsView } from './results-view.ts';
import { RunsView } from './runs-view.ts';
import { resultInFragment } from './share-link.ts';
import { followTheme } from './theme.ts';

/** What a listening command line is told. */
export type PageEvent = RunEvent | { readonly type: 'ended'; readonly result: Result; readonly markdown: string };

declare global {
  /** Put here by the command line before the page loads. */
  var varveBenchListener: ((event: PageEvent) => void) | undefined;
}

/** Rows that come are shown this often at most. */
const SHOWN_MS = 1000;

const address = new URLSearchParams(location.search);
const isDriven = address.has('auto');
followTheme();
const controls = new Controls(address, (plan) => {
  byId('plan').textContent = planText(plan);
});
const progress = new Progress();
const live = new LiveCharts();
const results = new ResultsView();
const compare = new CompareView();
const runs = new RunsView({ show, compare: (before, now, names) => compare.show(before, now, names) });
let running: AbortController | undefined;
let shown: Result | undefined;

function listen(event: PageEvent): void {
  globalThis.varveBenchListener?.(event);
}

/** Shows a finished result. */
function show(result: Result, name: string): void {
  shown = result;
  byId('result-actions').hidden = false;
  results.show(result, name);
  byId('results-title').scrollIntoView({ block: 'start' });
  byId('results-title').focus({ preventScroll: true });
}

async function run(plan: Plan): Promise<void> {
  if (running !== undefined) return;
  running = new AbortController();
  const { signal } = running;
  setRunning(true);
  progress.begin();
  const problems = planFrom(address).problems;
  const follow = isDriven ? () => undefined : follower(problems);
  const ran = await runPlan(
    plan,
    (event) => {
      if (event.type === 'progress') progress.take(event);
      follow(event);
      listen(event);
    },
    signal,
  );
  const finished = { ...ran, problems: [...new Set([...problems, ...ran.problems])] };
  running = undefined;
  setRunning(false);
  const name = `${plan.mode} run${signal.aborted ? ', cancelled' : ''}`;
  live.end();
  show(finished, name[0]?.toUpperCase() + name.slice(1));
  progress.end(`${signal.aborted ? 'Cancelled' : 'Done'}: ${finished.rows.length} rows.`);
  listen({ type: 'ended', result: finished, markdown: markdown(finished, ENGINES) });
  if (!isDriven && finished.rows.length > 0) await runs.keep(finished, name);
}

/** Shows what comes while a run goes on. */
function follower(asked: readonly string[]): (event: RunEvent) => void {
  const rows: Row[] = [];
  const soFar = { rows, failovers: [], storage: [], problems: [...asked] };
  let last_ms = 0;
  let isStale = true;
  byId('result-actions').hidden = true;
  byId('results-title').textContent = 'Results so far';
  byId('results-about').textContent = '';
  live.begin();
  results.update(soFar, true);
  return (event) => {
    live.take(event);
    if (event.type === 'row') rows.push(event.row);
    if (event.type === 'problem') soFar.problems.push(event.text);
    isStale ||= event.type === 'row' || event.type === 'problem';
    if (!isStale || performance.now() - last_ms < SHOWN_MS) return;
    last_ms = performance.now();
    isStale = false;
    results.update(soFar, true);
  };
}

function setRunning(isRunning: boolean): void {
  byId('run').hidden = isRunning;
  byId('cancel').hidden = !isRunning;
  // The button that had the focus is gone: the other one is in its place.
  byId(isRunning ? 'cancel' : 'run').focus({ preventScroll: true });
}

async function showShared(): Promise<void> {
  try {
    const result = await resultInFragment(location.hash);
    if (result !== undefined) show(result, 'A shared result');
  } catch (error) {
    byId('problems').hidden = false;
    byId('problem-list').textContent = error instanceof Error ? error.message : String(error);
  }
}

const { cores, timerStepMicroseconds, crossOriginIsolated: isolated } = environmentOf(true);
byId('environment').textContent =
  `${cores} cores, timer step ${duration(timerStepMicroseconds)}` +
  (isolated ? '.' : ': this page is not cross-origin isolated, so calls are timed in larger groups.');
comparedWith(byId('compared'));
offerExports(() => shown);
byId<HTMLFormElement>('choice').addEventListener('submit', (event) => {
  event.preventDefault();
  if (controls.check()) void run(controls.plan);
});
byId('cancel').addEventListener('click', () => {
  running?.abort(new DOMException('The run was cancelled.', 'AbortError'));
  announce('The run is being cancelled.');
});
byId('copy-link').addEventListener('click', () => {
  void copyText(location.href.replace(/#.*$/, ''), 'The link to this choice');
});
addEventListener('hashchange', () => void showShared());
if (isDriven) void run(controls.plan);
else {
  void offerOffline();
  void runs.refresh();
  void showShared();
}
