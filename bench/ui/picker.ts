/**
 * Boxes of a list, in groups: suites by family, engines by role.
 *
 * Invariant: every box has a label, every group a legend and buttons for all and none; what is checked is the only state.
 */

import { button, make } from './dom.ts';

/** One box. */
export interface Choice {
  readonly name: string;
  readonly about: string;
  /** Shown after the name: a version. */
  readonly mark?: string | undefined;
  readonly url?: string | undefined;
}

/** One group of boxes. */
export interface Group {
  readonly title: string;
  readonly choices: readonly Choice[];
}

/** A list of boxes in groups. `element` goes into the form. */
export class Picker {
  readonly element: HTMLElement;
  readonly #boxes = new Map<string, HTMLInputElement>();

  /** `presets` are buttons that check these names and no others. */
  constructor(
    field: string,
    title: string,
    groups: readonly Group[],
    presets: Readonly<Record<string, () => readonly string[]>>,
  ) {
    const sets = groups.map((group) => this.#groupElement(field, group));
    const set = (names: readonly string[]): void => {
      this.check(names);
      this.element.dispatchEvent(new Event('change', { bubbles: true }));
    };
    const buttons = Object.entries(presets).map(([name, names]) =>
      button(name, () => set(names()), { 'aria-label': `${title}: ${name}` }),
    );
    const head = make('div', { class: 'picks' }, ...buttons);
    this.element = make('fieldset', { class: 'picker' }, make('legend', { text: title }), head, ...sets);
  }

  /** The names that are checked, in the order of the list. */
  get chosen(): string[] {
    return [...this.#boxes].filter(([, box]) => box.checked).map(([name]) => name);
  }

  /** Checks these names and no others. */
  check(names: readonly string[]): void {
    for (const [name, box] of this.#boxes) box.checked = names.includes(name);
  }

  #groupElement(field: string, { title, choices }: Group): HTMLElement {
    const lines = choices.map((choice) => this.#line(field, choice));
    const all = button('all / none', () => {
      const boxes = choices.map(({ name }) => this.#boxes.get(name) as HTMLInputElement);
      const missing = boxes.some(({ checked }) => !checked);
      for (const box of boxes) box.checked = missing;
      boxes[0]?.dispatchEvent(new Event('change', { bubbles: true }));
    });
    all.setAttribute('aria-label', `all / none: ${title}`);
    return make(
      'fieldset',
      { class: 'group' },
      make('legend', { text: title }),
      all,
      make('div', { class: 'boxes' }, ...lines),
    );
  }

  #line(field: string, { name, about, mark, url }: Choice): HTMLElement {
    const box = make('input', { attributes: { type: 'checkbox', name: field, value: name } });
    this.#boxes.set(name, box);
    const label = make('label', {}, box, make('span', { class: 'name', text: name }));
    if (mark !== undefined) label.append(make('small', { text: mark }));
    label.append(make('small', { class: 'about', text: about }));
    if (url === undefined) return make('div', { class: 'box' }, label);
    const home = make('a', {
      text: 'home',
      attributes: { href: url, 'aria-label': `Home of ${name}`, rel: 'noreferrer' },
    });
    return make('div', { class: 'box' }, label, home);
  }
}
