/**
 * What to run: controls made of the options, and the address that says the same.
 *
 * Invariant: the address is what the controls say, always: opening it gives the same choice again.
 */

import type { Access } from '../core/engine.ts';
import { ACCESSES, OPTIONS, type Option, paramsOf, planFrom, standardPlan } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import { CHOICES } from '../core/workloads.ts';
import { ENGINES } from '../peers/list.ts';
import { byId, make } from './dom.ts';
import { familiesOf } from './families.ts';
import { Field } from './field.ts';
import { Picker } from './picker.ts';

const ABOUT_ACCESS: Readonly<Record<Access, string>> = {
  worker: 'calls inside a worker, as varve/synchronous has them',
  page: 'from the page, each awaited',
  inflight: 'from the page, 100 in flight',
};
const LEGENDS: Readonly<Record<Exclude<Option['group'], 'what'>, string>> = {
  run: 'Run',
  size: 'Size',
  shape: 'Shape of the data',
  store: 'Store',
};

/** The controls of the page. */
export class Controls {
  readonly #fields: readonly Field[];
  readonly #pickers: Readonly<Record<'suites' | 'engines' | 'access', Picker>>;
  readonly #changed: (plan: Plan) => void;
  #mode: Plan['mode'];

  /** Makes the controls as the address says; `changed` is told of every choice. */
  constructor(address: URLSearchParams, changed: (plan: Plan) => void) {
    this.#changed = changed;
    const { plan, problems } = planFrom(address);
    this.#mode = plan.mode;
    this.#pickers = {
      suites: suitePicker(() => this.#mode),
      engines: enginePicker(() => this.#mode),
      access: accessPicker(),
    };
    this.#fields = OPTIONS.filter(({ kind }) => kind !== 'list').map((option) => new Field(option));
    const groups = Object.entries(LEGENDS).map(([group, legend]) => {
      const own = this.#fields.filter(({ option }) => option.group === group).map(({ element }) => element);
      return make('fieldset', { class: 'fields' }, make('legend', { text: legend }), ...own);
    });
    const place = byId('controls');
    place.append(...groups, ...Object.values(this.#pickers).map(({ element }) => element));
    place.addEventListener('change', (event) => this.#take(event));
    byId('asked').replaceChildren(...problems.map((text) => make('li', { text: `The address: ${text}` })));
    byId('asked').hidden = problems.length === 0;
    this.show(plan);
    changed(plan);
  }

  /** What is chosen; fields that are wrong count as not given. */
  get plan(): Plan {
    const params = new URLSearchParams();
    for (const { option, value } of this.#fields) if (value !== '') params.set(option.name, value);
    for (const [name, picker] of Object.entries(this.#pickers)) params.set(name, picker.chosen.join());
    return planFrom(params).plan;
  }

  /** Shows another choice. */
  show(plan: Plan): void {
    const params = paramsOf(plan);
    this.#mode = plan.mode;
    for (const field of this.#fields) {
      const { name, choices = [], standard = '' } = field.option;
      field.value = params.get(name) ?? (choices.includes(standard) ? standard : '');
    }
    this.#pickers.suites.check(plan.suites);
    this.#pickers.engines.check(plan.engines);
    this.#pickers.access.check(plan.accesses);
  }

  /** Whether all fields are right; goes to the first that is not. */
  check(): boolean {
    const wrong = this.#fields.filter((field) => !field.check());
    if (wrong.length === 0) return true;
    byId<HTMLDetailsElement>('options').open = true;
    wrong[0]?.focus();
    return false;
  }

  #take({ target }: Event): void {
    if (target instanceof HTMLSelectElement && target.name === 'mode') {
      // Each mode has its own suites, and the quick one leaves some peers out.
      const mode = target.value === 'full' ? 'full' : 'quick';
      const { suites, engines } = standardPlan(mode);
      this.show({ ...this.plan, mode, suites, engines });
    }
    const { plan } = this;
    const query = String(paramsOf(plan));
    history.replaceState(null, '', `${location.pathname}${query === '' ? '' : `?${query}`}${location.hash}`);
    this.#changed(plan);
  }
}

function suitePicker(mode: () => Plan['mode']): Picker {
  const groups = familiesOf(CHOICES).map(({ title, choices }) => ({
    title,
    choices: choices.map((suite) => ({ name: suite.name, about: suite.title })),
  }));
  return new Picker('suites', 'Suites', groups, {
    all: () => CHOICES.map(({ name }) => name),
    none: () => [],
    quick: () => standardPlan('quick').suites,
    'as the mode has': () => standardPlan(mode()).suites,
  });
}

function enginePicker(mode: () => Plan['mode']): Picker {
  const titles = {
    varve: 'Varve',
    peer: 'Peers',
    floor: 'Floors: no stores, what no store can be quicker than',
  } as const;
  const groups = Object.entries(titles).map(([role, title]) => ({
    title,
    choices: ENGINES.filter((engine) => engine.role === role).map(({ name, about, version, url }) => ({
      name,
      about,
      mark: version,
      url,
    })),
  }));
  return new Picker('engines', 'Engines', groups, {
    all: () => ENGINES.map(({ name }) => name),
    'Varve only': () => ENGINES.filter(({ role }) => role === 'varve').map(({ name }) => name),
    'as the mode has': () => standardPlan(mode()).engines,
  });
}

function accessPicker(): Picker {
  const choices = ACCESSES.map((name) => ({ name, about: ABOUT_ACCESS[name] }));
  return new Picker('access', 'Ways in', [{ title: 'From where calls are made', choices }], {});
}
