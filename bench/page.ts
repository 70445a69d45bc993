/**
 * The benchmark page. A person chooses and presses Run; the command line opens it with `?auto` and listens to the
 * events through a function that it puts on the window.
 */

import { fillForm, planOf } from './choice.ts';
import { ENGINES } from './engines/list.ts';
import { duration } from './figures.ts';
import { planFrom } from './options.ts';
import type { RunEvent } from './plan.ts';
import { markdown, type Result } from './report.ts';
import type { Row } from './rows.ts';
import { environmentOf, runPlan } from './run.ts';
import { element, showEvent, showResult } from './view.ts';

/** What a listening command line is told. */
export type PageEvent = RunEvent | { readonly type: 'ended'; readonly result: Result; readonly markdown: string };

declare global {
  /** Put here by the command line before the page loads. */
  var varveBenchListener: ((event: PageEvent) => void) | undefined;
}

const form = element<HTMLFormElement>('choice');
const buttons = {
  run: element<HTMLButtonElement>('run'),
  cancel: element<HTMLButtonElement>('cancel'),
  json: element<HTMLButtonElement>('json'),
  copy: element<HTMLButtonElement>('copy'),
};
let running: AbortController | undefined;
let result: Result | undefined;

function listen(event: PageEvent): void {
  globalThis.varveBenchListener?.(event);
}

async function run(): Promise<void> {
  if (running !== undefined) return;
  running = new AbortController();
  const rows: Row[] = [];
  const problems = planFrom(address).problems;
  const storage: Result['storage'][number][] = [];
  setButtons(true);
  element('progress').hidden = false;
  showResult({ rows, failovers: [], storage, problems });
  const ran = await runPlan(
    planOf(form, address),
    (event) => {
      if (event.type === 'row') rows.push(event.row);
      if (event.type === 'problem') problems.push(event.text);
      if (event.type === 'storage') storage.push(event.storage);
      showEvent(event);
      listen(event);
    },
    running.signal,
  );
  const finished = { ...ran, problems };
  result = finished;
  running = undefined;
  showResult(finished);
  element('step').textContent = `Done: ${finished.rows.length} rows.`;
  element<HTMLProgressElement>('bar').value = 1;
  setButtons(false);
  listen({ type: 'ended', result: finished, markdown: markdown(finished, ENGINES) });
}

function setButtons(isRunning: boolean): void {
  buttons.run.disabled = isRunning;
  buttons.cancel.disabled = !isRunning;
  buttons.json.disabled = isRunning || result === undefined;
  buttons.copy.disabled = isRunning || result === undefined;
}

function download(): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([JSON.stringify(result, undefined, 2)], { type: 'application/json' }));
  link.download = 'varve-bench.json';
  link.click();
  URL.revokeObjectURL(link.href);
}

const address = new URLSearchParams(location.search);
fillForm(form, address);
const { cores, timerStepMicroseconds, crossOriginIsolated: isolated } = environmentOf(true);
element('environment').textContent =
  `${cores} cores, timer step ${duration(timerStepMicroseconds)}` +
  (isolated ? '.' : ': this page is not cross-origin isolated, so calls are timed in larger groups.');
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void run();
});
buttons.cancel.addEventListener('click', () => {
  running?.abort(new DOMException('The run was cancelled.', 'AbortError'));
});
buttons.json.addEventListener('click', download);
buttons.copy.addEventListener('click', () => {
  if (result !== undefined) void navigator.clipboard.writeText(markdown(result, ENGINES));
});
if (address.has('auto')) void run();
