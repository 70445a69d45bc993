/**
 * The control of one option that is a figure or a choice, with its help and what is wrong with it.
 *
 * Invariant: what counts as wrong is what the address would say is wrong (options.ts), in the same words, beside the field.
 */

import { type Option, planFrom } from '../core/options.ts';
import { make } from './dom.ts';

/** A labelled control. An empty value leaves the option to its standard. */
export class Field {
  readonly element: HTMLElement;
  readonly option: Option;
  readonly #input: HTMLInputElement | HTMLSelectElement;
  readonly #wrong: HTMLElement;

  constructor(option: Option) {
    this.option = option;
    const { name, title, about, unit, standard } = option;
    const id = `option-${name}`;
    this.#input = controlOf(option, id);
    this.#wrong = make('p', { class: 'wrong', id: `${id}-wrong` });
    const limits = option.kind === 'number' ? ` ${rangeOf(option)}.` : '';
    const help = make('p', { class: 'help', id: `${id}-help`, text: `${about}${limits}` });
    this.#input.setAttribute('aria-describedby', `${help.id} ${this.#wrong.id}`);
    if (this.#input instanceof HTMLInputElement && standard !== undefined) this.#input.placeholder = standard;
    const label = make('label', { text: title, attributes: { for: id } });
    const row = make('div', { class: 'entry' }, this.#input);
    if (unit !== undefined) row.append(make('span', { class: 'unit', text: unit }));
    this.element = make('div', { class: 'field' }, label, row, help, this.#wrong);
    this.#input.addEventListener('input', () => this.check());
  }

  /** As the address has it; empty when the standard holds. */
  get value(): string {
    return this.#input.value.trim();
  }

  set value(text: string) {
    this.#input.value = text;
    this.check();
  }

  /** Says beside the field what is wrong with it; whether it is right. */
  check(): boolean {
    // A number field that holds no number gives an empty value.
    const isNoNumber = this.#input.validity.badInput;
    const asked = new URLSearchParams({ [this.option.name]: isNoNumber ? '?' : this.value });
    const problem = this.value === '' && !isNoNumber ? '' : (planFrom(asked).problems[0] ?? '');
    this.#wrong.textContent = isNoNumber ? `${this.option.title} must be a number.` : problem;
    if (this.#wrong.textContent === '') this.#input.removeAttribute('aria-invalid');
    else this.#input.setAttribute('aria-invalid', 'true');
    return this.#wrong.textContent === '';
  }

  /** Puts the cursor there. */
  focus(): void {
    this.#input.focus();
  }
}

function controlOf(
  { name, kind, choices = [], min, max, step, standard }: Option,
  id: string,
): HTMLInputElement | HTMLSelectElement {
  if (kind === 'number') {
    const bounds = Object.entries({ min, max, step }).flatMap(([key, bound]) =>
      bound === undefined ? [] : [[key, String(bound)]],
    );
    const input = make('input', {
      id,
      attributes: { type: 'number', name, ...Object.fromEntries(bounds), inputmode: 'decimal' },
    });
    return input;
  }
  const select = make('select', { id, attributes: { name } });
  const values = kind === 'flag' ? ['true'] : choices;
  if (!values.includes(standard ?? ''))
    select.append(make('option', { text: standard ?? 'standard', attributes: { value: '' } }));
  for (const value of values) select.append(make('option', { text: value, attributes: { value } }));
  return select;
}

function rangeOf({ min, max }: Option): string {
  const text = (figure: number): string => figure.toLocaleString('en');
  if (min === undefined || max === undefined) return '';
  return `From ${text(min)} to ${text(max)}`;
}
