/**
 * The choice of a run: a field for each option, and the address that gives the same choice again.
 *
 * Invariant: the address always equals the fields. The browser checks figures; a wrong one counts as not given.
 */

import { OPTIONS, type Option, paramsOf, planFrom, valueIn } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import { engines, suites } from '../core/suite.ts';
import { byId, items, make } from './dom.ts';

/** Makes the fields as the address says; `changed` gets every choice. */
export function makeForm(address: URLSearchParams, changed: (plan: Plan) => void): void {
  const { plan, problems } = planFrom(address);
  const form = byId<HTMLFormElement>('choice');
  const fields = OPTIONS.filter(({ kind }) => kind !== 'list').map((option) => field(option, plan));
  const lists = OPTIONS.filter(({ kind }) => kind === 'list').map((option) => boxes(option, plan));
  byId('controls').append(make('div', { class: 'fields' }, ...fields), ...lists);
  byId('asked').replaceChildren(...items(problems.map((text) => `In the address: ${text}`)));
  form.addEventListener('change', ({ target }) => {
    // Each mode has its own suites, and the quick one leaves some peers out.
    if (target instanceof HTMLSelectElement && target.name === 'mode') location.search = `?mode=${target.value}`;
    const chosen = chosenPlan();
    const query = String(paramsOf(chosen));
    history.replaceState(null, '', `${location.pathname}${query === '' ? '' : `?${query}`}`);
    changed(chosen);
  });
  // A field that is folded away cannot show what is wrong with it.
  form.addEventListener('invalid', () => byId('options').setAttribute('open', ''), true);
  changed(plan);
}

export function chosenPlan(): Plan {
  const data = new FormData(byId<HTMLFormElement>('choice'));
  const given = OPTIONS.map(({ name, kind }) => [name, data.getAll(name).join(), kind] as const);
  const params = given.filter(([, text, kind]) => kind === 'list' || text !== '');
  return planFrom(new URLSearchParams(params.map(([name, text]) => [name, text]))).plan;
}

function field(option: Option, plan: Plan): HTMLElement {
  const { name, kind, about, choices, min, max, step = 1, standard } = option;
  const id = `option-${name}`;
  const value = String(valueIn(plan, option) ?? '');
  const shared = { id, name, 'aria-describedby': `${id}-help` };
  const bounds = { min: String(min), max: String(max), step: step < 1 ? 'any' : '1', placeholder: standard };
  const known = choices?.() ?? [];
  const texts = known.includes(standard) ? known : ['', ...known];
  const isNumber = kind === 'number';
  const input = isNumber
    ? make('input', { ...shared, type: 'number', ...bounds, value })
    : make('select', shared, ...texts.map((text) => make('option', { value: text }, text || standard)));
  if (!isNumber) input.value = value;
  const help = make('small', { id: `${id}-help` }, about + (isNumber ? ` From ${min} to ${max}.` : ''));
  return make('div', {}, make('label', { for: id }, name), input, help);
}

function boxes(option: Option, plan: Plan): HTMLElement {
  const { name, about, choices } = option;
  const texts = new Map([
    ...suites().map((suite) => [suite.name, suite.title] as const),
    ...engines().map((one) => [one.name, one.about] as const),
  ]);
  const chosen = valueIn(plan, option) as readonly string[];
  const inputs = (choices?.() ?? []).map((value) => {
    const input = make('input', { type: 'checkbox', name, value });
    input.checked = chosen.includes(value);
    return input;
  });
  const toggle = make('button', { type: 'button', 'aria-label': `${name}: all / none` }, 'all / none');
  toggle.onclick = () => {
    const checked = inputs.some((input) => !input.checked);
    for (const input of inputs) input.checked = checked;
    toggle.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const labels = inputs.map((input) =>
    make('label', {}, input, ` ${input.value} `, make('small', {}, texts.get(input.value) ?? '')),
  );
  const all = make('div', { class: 'boxes' }, ...labels);
  return make('fieldset', {}, make('legend', {}, name), make('p', {}, `${about} `, toggle), all);
}
