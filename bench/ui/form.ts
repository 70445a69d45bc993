/**
 * The choice of what to run: controls made of the options, and the address that says the same.
 *
 * Invariant: the address is what the controls say, always: opening it gives the same choice again. A wrong figure is told beside
 * its control in the words of the options.
 */

import { OPTIONS, type Option, paramsOf, planFrom, standardPlan } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import { engines } from '../core/registry.ts';
import { suites } from '../core/suite.ts';
import { button, byId, items, make } from './dom.ts';

/** One control: its value as the address has it, empty when the standard holds. */
interface Control {
  readonly option: Option;
  readonly element: HTMLElement;
  get(): string;
  set(value: string): void;
  /** Tells beside the control what is wrong with it; whether it is right. */
  check(): boolean;
}

export class Form {
  readonly #controls = OPTIONS.map((option) => (option.kind === 'list' ? boxes(option) : field(option)));
  readonly #changed: (plan: Plan) => void;

  /** Makes the controls as the address says; `changed` is told of every choice. */
  constructor(address: URLSearchParams, changed: (plan: Plan) => void) {
    this.#changed = changed;
    const { plan, problems } = planFrom(address);
    const fields = this.#controls.filter(({ option }) => option.kind !== 'list').map(({ element }) => element);
    const lists = this.#controls.filter(({ option }) => option.kind === 'list').map(({ element }) => element);
    const place = byId('controls');
    place.append(make('div', { class: 'fields' }, ...fields), ...lists);
    place.addEventListener('change', (event) => this.#take(event));
    byId('asked').replaceChildren(...items(problems.map((text) => `The address: ${text}`)));
    this.#show(plan);
    changed(plan);
  }

  /** The chosen plan; fields that are wrong count as not given. */
  get plan(): Plan {
    const params = new URLSearchParams();
    for (const { option, get } of this.#controls) {
      if (option.kind === 'list' || get() !== '') params.set(option.name, get());
    }
    return planFrom(params).plan;
  }

  /** Whether all controls are right; opens them when one is not. */
  check(): boolean {
    const isRight = this.#controls.map((control) => control.check()).every(Boolean);
    if (!isRight) byId<HTMLDetailsElement>('options').open = true;
    return isRight;
  }

  #show(plan: Plan): void {
    const params = paramsOf(plan);
    const lists: Readonly<Record<string, readonly string[]>> = {
      suites: plan.suites,
      engines: plan.engines,
      access: plan.accesses,
    };
    for (const { option, set } of this.#controls) set(lists[option.name]?.join() ?? params.get(option.name) ?? '');
  }

  #take({ target }: Event): void {
    if (target instanceof HTMLSelectElement && target.name === 'mode') {
      // Each mode has its own suites, and the quick one leaves some peers out.
      const mode = target.value === 'full' ? 'full' : 'quick';
      const { suites, engines } = standardPlan(mode);
      this.#show({ ...this.plan, mode, suites, engines });
    }
    for (const control of this.#controls) control.check();
    const { plan } = this;
    const query = String(paramsOf(plan));
    history.replaceState(null, '', `${location.pathname}${query === '' ? '' : `?${query}`}`);
    this.#changed(plan);
  }
}

/** A figure or a choice, with its help. */
function field(option: Option): Control {
  const { name, kind, about, choices, min, max, step, standard } = option;
  const id = `option-${name}`;
  const bounds = { min: String(min), max: String(max), step: String(step), placeholder: standard };
  const input =
    kind === 'number' ? make('input', { id, name, type: 'number', ...bounds }) : make('select', { id, name });
  if (input instanceof HTMLSelectElement) {
    const known = choices?.() ?? [];
    if (!known.includes(standard)) input.append(make('option', { value: '' }, standard));
    input.append(...known.map((value) => make('option', { value }, value)));
  }
  const range = kind === 'number' ? ` From ${min} to ${max}.` : '';
  const help = make('small', { id: `${id}-help` }, about + range);
  const wrong = make('p', { class: 'wrong', id: `${id}-wrong` });
  input.setAttribute('aria-describedby', `${help.id} ${wrong.id}`);
  const get = (): string => input.value.trim();
  return {
    option,
    element: make('div', {}, make('label', { for: id }, name), input, help, wrong),
    get,
    set: (value) => {
      input.value = value === '' && input instanceof HTMLSelectElement ? (input.options[0]?.value ?? '') : value;
    },
    check: () => {
      // A number field that holds no number gives an empty value.
      const asked = input.validity.badInput ? '?' : get();
      const problem = asked === '' ? '' : (planFrom(new URLSearchParams({ [name]: asked })).problems[0] ?? '');
      wrong.textContent = problem;
      input.setAttribute('aria-invalid', String(problem !== ''));
      return problem === '';
    },
  };
}

/** Boxes of a list. */
function boxes(option: Option): Control {
  const { name, about, choices } = option;
  const texts = new Map([
    ...suites().map((suite) => [suite.name, suite.title] as const),
    ...engines().map((one) => [one.name, one.about] as const),
  ]);
  const inputs = (choices?.() ?? []).map((value) => make('input', { type: 'checkbox', name, value }));
  const all = button(
    'all / none',
    () => {
      const checked = inputs.some((input) => !input.checked);
      for (const input of inputs) input.checked = checked;
      inputs[0]?.dispatchEvent(new Event('change', { bubbles: true }));
    },
    `${name}: all / none`,
  );
  const labels = inputs.map((input) =>
    make('label', {}, input, ` ${input.value} `, make('small', {}, texts.get(input.value) ?? '')),
  );
  return {
    option,
    element: make(
      'fieldset',
      {},
      make('legend', {}, name),
      make('p', {}, `${about} `, all),
      make('div', { class: 'boxes' }, ...labels),
    ),
    get: () =>
      inputs
        .filter(({ checked }) => checked)
        .map(({ value }) => value)
        .join(),
    set: (value) => {
      for (const input of inputs) input.checked = value.split(',').includes(input.value);
    },
    check: () => true,
  };
}
