/**
 * The benchmark page. A person chooses and presses Run; the command line opens it with `?auto` and listens to the
 * events through a function that it puts on the window.
 *
 * Invariant: a run that the command line drives draws nothing, keeps nothing and has no service worker: it measures what
 * `varve` does and nothing else. Nor is anything drawn between the rounds of a run that a person watches but rows and progress.
 */

import { barOf, chartOf } from '../core/chart.ts';
import { bestPeers, type Comparison, comparisonsOf, countText } from '../core/comparison.ts';
import { ACCESSES, planFrom } from '../core/options.ts';
import type { Plan, RunEvent } from '../core/plan.ts';
import { environmentLine, markdown, type Result } from '../core/result.ts';
import { caseName, casesOf, type Row } from '../core/row.ts';
import { stepsOf } from '../core/runner.ts';
import { suiteTables, tablesOf } from '../core/tables.ts';
import { ENGINES } from '../peers/all.ts';
import { environment, runPlan } from '../targets/browser/run.ts';
import { byId, download, foldedTable, items, make, scrolling, setText, tableOf } from './dom.ts';
import { Form } from './form.ts';
import { Runs } from './runs.ts';

/** What a listening command line is told. */
export type PageEvent = RunEvent | { readonly type: 'ended'; readonly result: Result; readonly markdown: string };

declare global {
  /** Put here by the command line before the page loads. */
  var varveBenchListener: ((event: PageEvent) => void) | undefined;
}

/** More bars are no picture any more. */
const BARS_MAX = 30;
/** Rows that come are shown this often at most. */
const SHOWN_MS = 1000;

const address = new URLSearchParams(location.search);
const isDriven = address.has('auto');
const title = document.title;
const form = new Form(address, (plan) => setText(byId('plan'), planText(plan)));
const runs = new Runs(show, (table) => {
  byId('compared').replaceChildren(tableOf(table));
  byId('compared').scrollIntoView({ block: 'start' });
});
let running: AbortController | undefined;
let shown: Result | undefined;

/** The extent of a plan, in one line. */
function planText(plan: Plan): string {
  const steps = stepsOf(
    plan,
    ENGINES.filter(({ name }) => plan.engines.includes(name)),
    ACCESSES,
  );
  if (steps === 0) return 'Nothing to run: choose a suite, an engine that can run it, and a way in.';
  const own = Object.keys(plan.custom).length > 0 || plan.scale !== 1 ? ', with sizes and options of yours' : '';
  return `A ${plan.mode} run of ${plan.suites.length} suites and ${plan.engines.length} engines, ${steps} steps${own}.`;
}

/** Shows a finished result. */
function show(result: Result): void {
  shown = result;
  const { rows, storage, notes, problems } = result;
  byId('results').hidden = false;
  setText(byId('results-about'), environmentLine(result.environment, result.plan));
  showProblems(problems);
  const comparisons = comparisonsOf(casesOf(rows));
  const unverified = rows.filter(({ verified }) => !verified).length;
  const checks = unverified === 0 ? `All ${rows.length} rows were verified.` : `${unverified} rows were NOT verified.`;
  const count = comparisons.length === 0 ? 'No peer was measured beside Varve.' : `Varve is ${countText(comparisons)}.`;
  setText(byId('headline'), `${count} ${checks}`);
  showChart(comparisons);
  const tables = tablesOf(rows, storage);
  byId('tables').replaceChildren(...tables.map((table) => foldedTable(table, tables.length < 4)));
  byId('notes').replaceChildren(...items(notes));
  byId('results').scrollIntoView({ block: 'start' });
}

/** The worst cases as a picture; the table has all. */
function showChart(comparisons: readonly Comparison[]): void {
  const worst = bestPeers(comparisons).sort((a, b) => a.ratio - b.ratio);
  const bars = worst.slice(0, BARS_MAX).map((one) => barOf(one, `${caseName(one.varve)}, ${one.varve.engine}`));
  byId('chart').hidden = bars.length === 0;
  if (bars.length === 0) return;
  const src = `data:image/svg+xml,${encodeURIComponent(chartOf('Varve beside the best peer of each case, in times its rate', bars))}`;
  const alt = bars.map(({ name, label }) => `${name} ${label}`).join('; ');
  byId('chart').replaceChildren(scrolling('Chart', make('img', { src, alt })));
}

function showProblems(problems: readonly string[]): void {
  byId('problems').hidden = problems.length === 0;
  byId('problem-list').replaceChildren(...items(problems));
}

async function run(plan: Plan): Promise<void> {
  if (running !== undefined) return;
  running = new AbortController();
  const { signal } = running;
  setRunning(true);
  const asked = planFrom(address).problems;
  const follow = follower(asked);
  const take = (event: RunEvent): void => {
    if (event.type === 'progress') showProgress(event);
    if (!isDriven) follow(event);
    globalThis.varveBenchListener?.(event);
  };
  const ran = await runPlan(plan, take, signal);
  const result = { ...ran, problems: [...new Set([...asked, ...ran.problems])] };
  running = undefined;
  setRunning(false);
  document.title = title;
  if (!isDriven) show(result);
  setText(byId('step'), `${signal.aborted ? 'Cancelled' : 'Done'}: ${result.rows.length} rows.`);
  const where = environmentLine(result.environment, plan);
  globalThis.varveBenchListener?.({ type: 'ended', result, markdown: markdown(result, ENGINES, where) });
  if (!isDriven && result.rows.length > 0)
    await runs.keep(result, `${plan.mode} run${signal.aborted ? ', cancelled' : ''}`);
}

/** Shows the rows that come while a run goes on. */
function follower(asked: readonly string[]): (event: RunEvent) => void {
  const rows: Row[] = [];
  const problems = [...asked];
  let last_ms = 0;
  return (event) => {
    if (event.type === 'row') rows.push(event.row);
    if (event.type === 'problem') problems.push(event.text);
    if ((event.type !== 'row' && event.type !== 'problem') || performance.now() - last_ms < SHOWN_MS) return;
    last_ms = performance.now();
    byId('results').hidden = false;
    setText(byId('headline'), 'So far:');
    showProblems(problems);
    byId('chart').hidden = true;
    byId('tables').replaceChildren(...suiteTables(rows).map((table) => foldedTable(table, true)));
  };
}

function showProgress({ done, total, text }: Extract<RunEvent, { type: 'progress' }>): void {
  const share = done / Math.max(total, 1);
  byId<HTMLProgressElement>('bar').value = share;
  setText(byId('step'), `${Math.floor(share * 100)}%, ${text}`);
  document.title = `${Math.floor(share * 100)}% - ${title}`;
}

function setRunning(isRunning: boolean): void {
  byId('run').hidden = isRunning;
  byId('cancel').hidden = !isRunning;
  byId('bar').hidden = !isRunning;
  // The button that had the focus is gone: the other one is in its place.
  byId(isRunning ? 'cancel' : 'run').focus({ preventScroll: true });
}

/** Has the service worker keep the page. The page is never reloaded by itself. */
async function keepOffline(): Promise<void> {
  const line = byId('offline');
  try {
    await navigator.serviceWorker.register('./offline-worker.js', { updateViaCache: 'none' });
    await navigator.serviceWorker.ready;
    line.dataset['state'] = 'ready';
    const coarse = crossOriginIsolated ? '' : ' Load it again for a finer timer: its host sends no isolation headers.';
    setText(line, `Kept in this browser: the page works without a network.${coarse}`);
  } catch {
    setText(line, 'This browser keeps no copy of the page: it needs the network.');
  }
}

function save(ending: string, type: string, textOf: (result: Result) => string): void {
  const day = shown?.environment.date.slice(0, 16).replaceAll(':', '') ?? '';
  if (shown !== undefined) download(`varve-bench-${day}.${ending}`, type, textOf(shown));
}

byId<HTMLFormElement>('choice').addEventListener('submit', (event) => {
  event.preventDefault();
  if (form.check()) void run(form.plan);
});
byId('cancel').addEventListener('click', () =>
  running?.abort(new DOMException('The run was cancelled.', 'AbortError')),
);
byId('save-json').addEventListener('click', () =>
  save('json', 'application/json', (result) => JSON.stringify(result, undefined, 2)),
);
byId('save-markdown').addEventListener('click', () =>
  save('md', 'text/markdown', (result) => markdown(result, ENGINES, environmentLine(result.environment, result.plan))),
);
if (isDriven) void run(form.plan);
else {
  const { cores, timerStepMicroseconds } = environment();
  setText(byId('environment'), `${cores} cores, timer step ${timerStepMicroseconds} us.`);
  void keepOffline();
  void runs.refresh();
}
