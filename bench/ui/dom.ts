/**
 * Finds and makes elements of the benchmark page.
 *
 * Invariant: text reaches the page as text, never as markup, because an address can contain any.
 */

import { isWords, type Table } from '../core/tables.ts';

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}.`);
  return found as T;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Changes a text only if it differs, so that nothing is laid out or announced again. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

export function items(texts: readonly string[]): HTMLLIElement[] {
  return texts.map((text) => make('li', {}, text));
}

export function tableOf({ title, columns, lines }: Table): HTMLElement {
  const row = (look: string, cells: readonly string[], isHead: boolean): HTMLElement => {
    const made = cells.map((text, i) => {
      const words = { class: isWords(columns[i] ?? '', i) ? 'words' : '' };
      if (isHead) return make('th', { ...words, scope: 'col' }, text);
      return i === 0 ? make('th', { ...words, scope: 'row' }, text) : make('td', words, text);
    });
    return make('tr', { class: look }, ...made);
  };
  const head = make('thead', {}, row('', columns, true));
  const body = make('tbody', {}, ...lines.map(({ cells, look = '' }) => row(look, cells, false)));
  const table = make('table', { 'aria-label': title }, head, body);
  // It scrolls sideways, also by keyboard.
  return make('div', { class: 'scroll', role: 'group', 'aria-label': title, tabindex: '0' }, table);
}

export function foldedTable(table: Table, isOpen: boolean): HTMLElement {
  const details = make('details', {}, make('summary', {}, table.title), tableOf(table));
  details.open = isOpen;
  return details;
}

export function download(name: string, type: string, text: string): void {
  const link = make('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
