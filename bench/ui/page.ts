/**
 * The benchmark page. A person chooses and presses Run; the command line opens it with `?auto` and receives the events through
 * a function that it puts on the window.
 *
 * Invariant: while a run goes on nothing but its progress is drawn: calls from the page run in the thread that draws.
 */

import { comparisonsOf, countText } from '../core/comparison.ts';
import { everydayOf, type Published } from '../core/everyday.ts';
import { ACCESSES, planFrom } from '../core/options.ts';
import type { Plan, RunEvent } from '../core/plan.ts';
import { environmentLine, markdown, type Result } from '../core/result.ts';
import { casesOf } from '../core/row.ts';
import { stepsOf } from '../core/runner.ts';
import { tablesOf } from '../core/tables.ts';
import { ENGINES } from '../peers/all.ts';
import { environment, type PageEvent, runPlan } from '../targets/browser/run.ts';
import { chartOf } from './chart.ts';
import { byId, download, foldedTable, items, setText, tableOf } from './dom.ts';
import { chosenPlan, makeForm } from './form.ts';

declare global {
  /** Put here by the command line before the page loads. */
  var varveBenchListener: ((event: PageEvent) => void) | undefined;
}

/** Put here when the page is built. */
declare const PUBLISHED: Published;

const TIMES = 'How many times as fast as the other store, on a logarithmic scale';

const address = new URLSearchParams(location.search);
const isDriven = address.has('auto');
const title = document.title;
let running: AbortController | undefined;
let saved: Result | undefined;

function planText(plan: Plan): string {
  const chosen = ENGINES.filter(({ name }) => plan.engines.includes(name));
  const steps = stepsOf(plan, chosen, ACCESSES);
  if (steps === 0) return 'Nothing to run. Choose a suite, an engine that can run it, and a way to call it (access).';
  const own = Object.keys(plan.custom).length > 0 || plan.scale !== 1 ? ', with your sizes and options' : '';
  return `A ${plan.mode} run${own}. Suites: ${plan.suites.length}. Engines: ${plan.engines.length}. Steps: ${steps}.`;
}

function show(result: Result): void {
  saved = result;
  const { rows, storage, notes, problems } = result;
  byId('results').hidden = false;
  setText(byId('results-about'), environmentLine(result.environment, result.plan));
  showProblems(problems);
  const comparisons = comparisonsOf(casesOf(rows));
  const unverified = rows.filter(({ verified }) => !verified).length;
  const checks = unverified === 0 ? `All ${rows.length} rows were verified.` : `${unverified} rows were NOT verified.`;
  const count = comparisons.length === 0 ? 'No peer was measured beside Varve.' : `Varve is ${countText(comparisons)}.`;
  setText(byId('headline'), `${count} ${checks}`);
  const groups = everydayOf(comparisons);
  byId('charts').replaceChildren(...(groups.length > 0 ? [chartOf(TIMES, groups)] : []));
  const tables = tablesOf(rows, storage);
  byId('tables').replaceChildren(...tables.map((table, i) => foldedTable(table, i === 0 || tables.length < 4)));
  byId('notes').replaceChildren(...items(notes));
  byId('results').scrollIntoView({ block: 'start' });
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
  const take = (event: RunEvent): void => {
    if (event.type === 'progress') showProgress(event);
    globalThis.varveBenchListener?.(event);
  };
  const ran = await runPlan(plan, take, signal);
  const result = { ...ran, problems: [...new Set([...asked, ...ran.problems])] };
  running = undefined;
  setRunning(false);
  document.title = title;
  if (!isDriven) show(result);
  setText(byId('step'), `${signal.aborted ? 'Cancelled' : 'Done'}: ${result.rows.length} rows.`);
  globalThis.varveBenchListener?.({ type: 'ended', result, markdown: reportOf(result) });
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
  // The other button is now in the place of the one that had the focus.
  byId(isRunning ? 'cancel' : 'run').focus({ preventScroll: true });
}

function reportOf(result: Result): string {
  return markdown(result, ENGINES, environmentLine(result.environment, result.plan));
}

function save(): void {
  const day = saved?.environment.date.slice(0, 16).replaceAll(':', '') ?? '';
  download(`varve-bench-${day}.json`, 'application/json', JSON.stringify(saved, undefined, 2));
}

byId('choice').onsubmit = (event) => {
  event.preventDefault();
  void run(chosenPlan());
};
byId('cancel').onclick = () => running?.abort(new DOMException('The run was cancelled.', 'AbortError'));
byId('save-json').onclick = save;
setText(byId('published-where'), `Measured on ${PUBLISHED.where}`);
byId('published').replaceChildren(chartOf(TIMES, PUBLISHED.groups));
setText(byId('slower'), `Varve is ${PUBLISHED.count}. The worst case of each of the worst suites:`);
byId('slowest').replaceChildren(tableOf(PUBLISHED.slowest));
makeForm(address, (plan) => setText(byId('plan'), planText(plan)));
const { cores, timerStepMicroseconds } = environment();
setText(byId('environment'), `${cores} cores, timer step ${timerStepMicroseconds} µs.`);
if (isDriven) void run(chosenPlan());
