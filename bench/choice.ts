/**
 * What to run: the form of the page, and the address it was opened with, read into a plan.
 *
 * Address: `?auto` starts at once; `quick`, `suites=a,b`, `engines=a,b`, `access=worker,page`, `count=1000` choose.
 */

import type { Access } from './engine.ts';
import { ENGINES, FULL_ONLY } from './engines/list.ts';
import type { Plan } from './plan.ts';
import { CHOICES } from './workloads.ts';

const ACCESSES: readonly { readonly name: Access; readonly about: string }[] = [
  { name: 'worker', about: 'varve/sync, in the worker' },
  { name: 'page', about: 'from the page, awaited' },
  { name: 'inflight', about: 'from the page, 100 in flight' },
];

/** Fills the fieldsets of the form, and checks what the address asks for. */
export function fillForm(form: HTMLFormElement, address: URLSearchParams): void {
  const full = address.has('full');
  const pick = (param: string, name: string, standard: boolean): boolean => {
    const asked = address.get(param);
    return asked === null ? standard : asked.split(',').includes(name);
  };
  for (const { name, about } of ACCESSES) addBox(form, 'accesses', name, about, pick('access', name, true));
  for (const { name, about, role } of ENGINES) {
    const standard = full || !FULL_ONLY.includes(name);
    addBox(form, 'engines', name, role === 'varve' ? '' : role, pick('engines', name, standard), about);
  }
  for (const { name, title, quick } of CHOICES) {
    addBox(form, 'suites', name, title, pick('suites', name, full || quick));
  }
  const mode = form.querySelector<HTMLInputElement>(`input[name="mode"][value="${full ? 'full' : 'quick'}"]`);
  if (mode) mode.checked = true;
  const count = form.querySelector<HTMLInputElement>('input[name="count"]');
  if (count) count.value = address.get('count') ?? '';
  form.addEventListener('change', ({ target }) => {
    if (target instanceof HTMLInputElement && target.name === 'mode') checkMode(form, target.value === 'full');
  });
}

/** What the address asks for and is not there. */
export function unknownNames(address: URLSearchParams): string[] {
  const known: Readonly<Record<string, readonly string[]>> = {
    suites: CHOICES.map(({ name }) => name),
    engines: [...ENGINES.map(({ name }) => name), 'none'],
    access: ACCESSES.map(({ name }) => name),
  };
  return Object.entries(known).flatMap(([param, names]) => {
    const asked = address.get(param)?.split(',') ?? [];
    return asked.filter((name) => !names.includes(name)).map((name) => `There is no "${name}" among the ${param}.`);
  });
}

/** The quick mode has its own suites and leaves some peers out; the full one has all. */
function checkMode(form: HTMLFormElement, full: boolean): void {
  for (const box of form.querySelectorAll<HTMLInputElement>('input[type="checkbox"]')) {
    if (box.name === 'suites') box.checked = full || CHOICES.some(({ name, quick }) => name === box.value && quick);
    if (box.name === 'engines') box.checked = full || !FULL_ONLY.includes(box.value);
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

/** The plan that the form says. */
export function planOf(form: HTMLFormElement): Plan {
  const data = new FormData(form);
  const chosen = (name: string): string[] => data.getAll(name).map(String);
  const count = Number(data.get('count'));
  return {
    quick: data.get('mode') !== 'full',
    suites: chosen('suites'),
    engines: chosen('engines'),
    accesses: ACCESSES.map(({ name }) => name).filter((name) => chosen('accesses').includes(name)),
    count: count > 0 ? Math.floor(count) : undefined,
  };
}
