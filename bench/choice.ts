/** What to run: the form of the page, filled from the address it was opened with, and read into a plan. */

import type { Access } from './engine.ts';
import { ENGINES } from './engines/list.ts';
import { ACCESSES, planFrom, standardPlan } from './options.ts';
import type { Plan } from './plan.ts';
import { CHOICES } from './workloads.ts';

const ABOUT: Readonly<Record<Access, string>> = {
  worker: 'varve/sync, in the worker',
  page: 'from the page, awaited',
  inflight: 'from the page, 100 in flight',
};

/** Fills the fieldsets of the form with what the address asks for. */
export function fillForm(form: HTMLFormElement, address: URLSearchParams): void {
  const { plan } = planFrom(address);
  for (const name of ACCESSES) addBox(form, 'accesses', name, ABOUT[name], plan.accesses.includes(name));
  for (const { name, about, role } of ENGINES) {
    addBox(form, 'engines', name, role === 'varve' ? '' : role, plan.engines.includes(name), about);
  }
  for (const { name, title } of CHOICES) addBox(form, 'suites', name, title, plan.suites.includes(name));
  const mode = form.querySelector<HTMLInputElement>(`input[name="mode"][value="${plan.mode}"]`);
  if (mode) mode.checked = true;
  const calls = form.querySelector<HTMLInputElement>('input[name="calls"]');
  if (calls) calls.value = String(plan.custom.calls ?? '');
  form.addEventListener('change', ({ target }) => {
    if (target instanceof HTMLInputElement && target.name === 'mode') checkMode(form, target.value === 'full');
  });
}

/** The quick mode has its own suites and leaves some peers out; the full one has all. */
function checkMode(form: HTMLFormElement, full: boolean): void {
  const { suites, engines } = standardPlan(full ? 'full' : 'quick');
  for (const box of form.querySelectorAll<HTMLInputElement>('input[type="checkbox"]')) {
    if (box.name === 'suites') box.checked = suites.includes(box.value);
    if (box.name === 'engines') box.checked = engines.includes(box.value);
  }
}

function addBox(form: HTMLFormElement, set: string, name: string, about: string, checked: boolean, title = ''): void {
  const label = document.createElement('label');
  label.title = title;
  const box = document.createElement('input');
  Object.assign(box, { type: 'checkbox', name: set, value: name, checked });
  const small = document.createElement('small');
  small.textContent = about;
  label.append(box, ` ${name} `, small);
  form.querySelector(`#${set}`)?.append(label);
}

/** The plan that the form says; what the form has no control for comes from the address. */
export function planOf(form: HTMLFormElement, address: URLSearchParams): Plan {
  const data = new FormData(form);
  const { plan } = planFrom(address);
  const chosen = (name: string): string[] => data.getAll(name).map(String);
  const { calls: _, ...custom } = plan.custom;
  const calls = Math.floor(Number(data.get('calls')));
  return {
    ...plan,
    mode: data.get('mode') === 'full' ? 'full' : 'quick',
    suites: chosen('suites'),
    engines: chosen('engines'),
    accesses: ACCESSES.filter((name) => chosen('accesses').includes(name)),
    custom: { ...custom, ...(calls > 0 && { calls }) },
  };
}
