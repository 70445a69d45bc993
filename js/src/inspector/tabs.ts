/**
 * Views of which one is shown, as the pattern of tabs of the ARIA practices: the arrow keys choose, Tab goes into the view.
 * Invariant: one tab is selected, and only that one is reached with Tab.
 */

import { button, element } from './dom.ts';

interface Tab {
  readonly name: string;
  readonly button: HTMLButtonElement;
  readonly panel: HTMLElement;
}

export class Tabs {
  readonly #list = element('div', { class: 'tabs', attributes: { role: 'tablist', 'aria-label': 'Views' } });
  readonly root = element('div', {}, this.#list);
  readonly #tabs: Tab[] = [];
  #chosen = '';

  /** @param onChoose called when the visitor chooses another view */
  constructor(onChoose: (name: string) => void) {
    this.#list.addEventListener('click', ({ target }) => {
      const found = this.#tabs.find((tab) => tab.button === target);
      if (found !== undefined && found.name !== this.#chosen) onChoose(found.name);
    });
    this.#list.addEventListener('keydown', (event) => {
      const next = this.#tabs[this.#indexAfter(event.key)];
      if (next === undefined) return;
      event.preventDefault();
      next.button.focus();
      next.button.click();
    });
  }

  get chosen(): string {
    return this.#chosen;
  }

  add(name: string, words: string, content: HTMLElement): void {
    const tab = button(`tab-${name}`, words, 'tab');
    tab.setAttribute('role', 'tab');
    tab.setAttribute('aria-controls', `view-${name}`);
    const panel = element(
      'div',
      { id: `view-${name}`, class: 'view', attributes: { role: 'tabpanel', 'aria-labelledby': tab.id } },
      content,
    );
    this.#list.append(tab);
    this.root.append(panel);
    this.#tabs.push({ name, button: tab, panel });
  }

  /** Shows a view; the first one where there is none of this name. */
  choose(name: string): void {
    this.#chosen = (this.#tabs.find((tab) => tab.name === name) ?? this.#tabs[0])?.name ?? '';
    for (const tab of this.#tabs) {
      const isChosen = tab.name === this.#chosen;
      tab.button.setAttribute('aria-selected', String(isChosen));
      tab.button.tabIndex = isChosen ? 0 : -1;
      tab.panel.hidden = !isChosen;
    }
  }

  /** The place of the tab that a key leads to; -1 for other keys. */
  #indexAfter(key: string): number {
    const count = this.#tabs.length;
    const now = this.#tabs.findIndex(({ name }) => name === this.#chosen);
    if (key === 'ArrowRight') return (now + 1) % count;
    if (key === 'ArrowLeft') return (now + count - 1) % count;
    if (key === 'Home') return 0;
    return key === 'End' ? count - 1 : -1;
  }
}
