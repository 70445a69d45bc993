/**
 * The choice of a run: controls made from the options, and the address that gives the same choice again.
 *
 * Invariant: the address always equals the controls. A wrong figure is reported beside its control, and counts as not given.
 */

import { OPTIONS, type Option, paramsOf, planFrom, standardPlan, valueIn } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import { engines, suites } from '../core/suite.ts';
import { button, byId, items, make } from './dom.ts';

type Field = HTMLInputElement | HTMLSelectElement;

const FIELDS = OPTIONS.filter(({ kind }) => kind !== 'list');
const LISTS = OPTIONS.filter(({ kind }) => kind === 'list');

const controls = (): Field[] => [...byId('controls').querySelectorAll<Field>('[name]')];

/** Makes the controls as the address says; `changed` gets every choice. */
export function makeForm(address: URLSearchParams, changed: (plan: Plan) => void): void {
  const { plan, problems } = planFrom(address);
  const place = byId('controls');
  place.append(make('div', { class: 'fields' }, ...FIELDS.map(field)), ...LISTS.map(boxes));
  place.addEventListener('change', ({ target }) => {
    if (target instanceof HTMLSelectElement && target.name === 'mode') {
      // Each mode has its own suites, and the quick one leaves some peers out.
      const mode = target.value === 'full' ? 'full' : 'quick';
      const { suites, engines } = standardPlan(mode);
      show({ ...chosenPlan(), mode, suites, engines });
    }
    isRight();
    const chosen = chosenPlan();
    const query = String(paramsOf(chosen));
    history.replaceState(null, '', `${location.pathname}${query === '' ? '' : `?${query}`}`);
    changed(chosen);
  });
  byId('asked').replaceChildren(...items(problems.map((text) => `In the address: ${text}`)));
  show(plan);
  changed(plan);
}

/** The plan of the controls. */
export function chosenPlan(): Plan {
  const data = new FormData(byId<HTMLFormElement>('choice'));
  const given = OPTIONS.map(({ name, kind }) => [name, data.getAll(name).join().trim(), kind] as const);
  const params = given.filter(([, text, kind]) => kind === 'list' || text !== '');
  return planFrom(new URLSearchParams(params.map(([name, text]) => [name, text]))).plan;
}

/** Whether all controls are right; shows beside each one what is wrong. */
export function isRight(): boolean {
  const problems = controls().flatMap((input) => {
    const wrong = document.getElementById(`${input.id}-wrong`);
    if (wrong === null) return [];
    // A number field that contains no number gives an empty value.
    const text = input.validity.badInput ? '?' : input.value.trim();
    const [problem] = text === '' ? [] : planFrom(new URLSearchParams({ [input.name]: text })).problems;
    wrong.textContent = problem ?? '';
    input.setAttribute('aria-invalid', String(problem !== undefined));
    return problem ?? [];
  });
  return problems.length === 0;
}

function show(plan: Plan): void {
  const params = paramsOf(plan);
  const lists = new Map(LISTS.map((option) => [option.name, valueIn(plan, option) as readonly string[]]));
  for (const input of controls()) {
    if (input instanceof HTMLSelectElement) input.value = params.get(input.name) ?? input.options[0]?.value ?? '';
    else if (input.type === 'checkbox') input.checked = lists.get(input.name)?.includes(input.value) ?? false;
    else input.value = params.get(input.name) ?? '';
  }
}

/** A figure or a choice, with its help. */
function field({ name, kind, about, choices, min, max, step, standard }: Option): HTMLElement {
  const id = `option-${name}`;
  const shared = { id, name, 'aria-describedby': `${id}-help ${id}-wrong` };
  const bounds = { min: String(min), max: String(max), step: String(step), placeholder: standard };
  const known = choices?.() ?? [];
  const usual = known.includes(standard) ? [] : [make('option', { value: '' }, standard)];
  const input =
    kind === 'number'
      ? make('input', { ...shared, type: 'number', ...bounds })
      : make('select', shared, ...usual, ...known.map((value) => make('option', { value }, value)));
  const range = kind === 'number' ? ` From ${min} to ${max}.` : '';
  const help = make('small', { id: `${id}-help` }, about + range);
  return make(
    'div',
    {},
    make('label', { for: id }, name),
    input,
    help,
    make('p', { class: 'wrong', id: `${id}-wrong` }),
  );
}

/** The boxes of a list. */
function boxes({ name, about, choices }: Option): HTMLElement {
  const texts = new Map([
    ...suites().map((suite) => [suite.name, suite.title] as const),
    ...engines().map((one) => [one.name, one.about] as const),
  ]);
  const inputs = (choices?.() ?? []).map((value) => make('input', { type: 'checkbox', name, value }));
  const toggle = (): void => {
    const checked = inputs.some((input) => !input.checked);
    for (const input of inputs) input.checked = checked;
    inputs[0]?.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const labels = inputs.map((input) =>
    make('label', {}, input, ` ${input.value} `, make('small', {}, texts.get(input.value) ?? '')),
  );
  return make(
    'fieldset',
    {},
    make('legend', {}, name),
    make('p', {}, `${about} `, button('all / none', toggle, `${name}: all / none`)),
    make('div', { class: 'boxes' }, ...labels),
  );
}
