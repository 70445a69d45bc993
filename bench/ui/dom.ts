/**
 * Finding and making elements of the benchmark page.
 *
 * Invariant: text reaches the page as text, never as markup: the content of a saved run is not trusted.
 */

import { isWords, type Table } from '../core/tables.ts';

/** The element with this id; the page has it. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}.`);
  return found as T;
}

/** Makes an element with its attributes and children. */
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

/** A button that does something other than submitting. */
export function button(text: string, act: () => void, label = text): HTMLButtonElement {
  const made = make('button', { type: 'button', 'aria-label': label }, text);
  made.addEventListener('click', act);
  return made;
}

/** Changes a text only when it is another one, so that nothing is laid out or announced anew. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

/** A list of texts. */
export function items(texts: readonly string[]): HTMLLIElement[] {
  return texts.map((text) => make('li', {}, text));
}

/** A table as HTML. */
export function tableOf({ title, columns, lines }: Table): HTMLElement {
  const cell = (tag: 'td' | 'th', text: string, i: number, scope?: string): HTMLElement =>
    make(tag, { class: isWords(columns[i] ?? '', i) ? 'words' : '', ...(scope && { scope }) }, text);
  const head = make('tr', {}, ...columns.map((column, i) => cell('th', column, i, 'col')));
  const body = lines.map(({ cells, look = '' }) =>
    make(
      'tr',
      { class: look },
      ...cells.map((text, i) => (i === 0 ? cell('th', text, i, 'row') : cell('td', text, i))),
    ),
  );
  const table = make(
    'table',
    {},
    make('caption', { class: 'unseen' }, title),
    make('thead', {}, head),
    make('tbody', {}, ...body),
  );
  return scrolling(title, table);
}

/** An element that scrolls must be reachable by keyboard. */
export function scrolling(title: string, content: Node): HTMLElement {
  return make('div', { class: 'scroll', role: 'group', 'aria-label': title, tabindex: '0' }, content);
}

/** A table that opens when it is asked for. */
export function foldedTable(table: Table, isOpen: boolean): HTMLElement {
  const details = make('details', {}, make('summary', {}, table.title), tableOf(table));
  details.open = isOpen;
  return details;
}

/** Offers a text as a file. */
export function download(name: string, type: string, text: string): void {
  const link = make('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
