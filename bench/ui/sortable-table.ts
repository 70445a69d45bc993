/**
 * A table that is sorted by any column, and copied as Markdown, CSV or tab-separated text.
 *
 * Invariant: what is copied is what is shown, in the order shown. The header of a sorted column says so (`aria-sort`), and
 * the chosen order outlasts new lines.
 */

import { button, copyText, make } from './dom.ts';
import { type Direction, firstDirection, ordered, type SortValue } from './ordering.ts';
import { type TextTable, toCsv, toMarkdown, toTsv } from './table-text.ts';

/** One column. */
export interface Column<T> {
  readonly title: string;
  /** The cell. */
  readonly text: (item: T) => string;
  /** What the column is sorted by; the text when absent. */
  readonly value?: (item: T) => SortValue;
  /** What the figures are, shown on the header. */
  readonly about?: string;
  /** Left-aligned. */
  readonly words?: boolean;
  /** A class for the cell, such as `bad`. */
  readonly look?: (item: T) => string | undefined;
}

/** What a table is made of. */
export interface TableOptions<T> {
  /** Said to those who do not see where the table stands. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  /** A class for the line, such as the role of its engine. */
  readonly look?: (item: T) => string;
}

/** A table and its buttons; `element` goes into the page. */
export class SortableTable<T> {
  readonly element = make('div', { class: 'table' });
  readonly #options: TableOptions<T>;
  readonly #body = make('tbody');
  readonly #heads: HTMLTableCellElement[];
  #items: readonly T[] = [];
  #sorted: { readonly index: number; readonly direction: Direction } | undefined;

  constructor(options: TableOptions<T>, items: readonly T[]) {
    this.#options = options;
    this.#heads = options.columns.map((column, index) => {
      const head = make('th', { class: column.words ? 'words' : '', attributes: { scope: 'col' } });
      const sorter = button(column.title, () => this.#sortBy(index));
      if (column.about !== undefined) sorter.title = column.about;
      head.append(sorter);
      return head;
    });
    const caption = make('caption', { class: 'unseen', text: options.caption });
    const table = make('table', {}, caption, make('thead', {}, make('tr', {}, ...this.#heads)), this.#body);
    const scroller = make(
      'div',
      { class: 'scroll', attributes: { role: 'group', 'aria-label': options.caption } },
      table,
    );
    // What scrolls must be reachable by keyboard.
    scroller.tabIndex = 0;
    this.element.append(scroller, this.#copies());
    this.update(items);
  }

  /** Shows other items, in the chosen order. */
  update(items: readonly T[]): void {
    this.#items = items;
    this.#show();
  }

  /** What is shown, as texts. */
  get text(): TextTable {
    const { columns } = this.#options;
    return {
      titles: columns.map(({ title }) => title),
      lines: this.#order().map((item) => columns.map(({ text }) => text(item))),
    };
  }

  #copies(): HTMLElement {
    const { caption } = this.#options;
    const ways = { Markdown: toMarkdown, CSV: toCsv, TSV: toTsv };
    const buttons = Object.entries(ways).map(([name, as]) =>
      button(name, () => void copyText(as(this.text), `The table as ${name}`), {
        'aria-label': `Copy as ${name}: ${caption}`,
      }),
    );
    return make('div', { class: 'copies' }, make('span', { text: 'Copy' }), ...buttons);
  }

  #sortBy(index: number): void {
    const column = this.#options.columns[index] as Column<T>;
    const opposite = { ascending: 'descending', descending: 'ascending' } as const;
    const direction =
      this.#sorted?.index === index
        ? opposite[this.#sorted.direction]
        : firstDirection(this.#items.map((item) => sortValueOf(column, item)));
    this.#sorted = { index, direction };
    this.#heads.forEach((head, i) => {
      if (i === index) head.setAttribute('aria-sort', direction);
      else head.removeAttribute('aria-sort');
    });
    this.#show();
  }

  #order(): readonly T[] {
    if (this.#sorted === undefined) return this.#items;
    const column = this.#options.columns[this.#sorted.index] as Column<T>;
    return ordered(this.#items, (item) => sortValueOf(column, item), this.#sorted.direction);
  }

  #show(): void {
    const { columns, look } = this.#options;
    const lines = this.#order().map((item) => {
      const cells = columns.map((column, i) => {
        const classes = [column.words ? 'words' : '', column.look?.(item) ?? ''].filter(Boolean).join(' ');
        const traits = { text: column.text(item), ...(classes === '' ? {} : { class: classes }) };
        return i === 0 ? make('th', { ...traits, attributes: { scope: 'row' } }) : make('td', traits);
      });
      return make('tr', { class: look?.(item) ?? '' }, ...cells);
    });
    this.#body.replaceChildren(...lines);
  }
}

function sortValueOf<T>(column: Column<T>, item: T): SortValue {
  return column.value === undefined ? column.text(item) : column.value(item);
}
