/**
 * The entries of a range, a page at a time.
 * Invariant: each page is a separate scan, from the last key of the page before or to the first, so that a list left open
 * pins nothing in the engine.
 */

import type { Key, KeyRange } from '../../types.ts';
import { button, element, setText } from '../dom.ts';
import { formatCount, formatDuration, plural } from '../format.ts';
import type { AnyStore } from '../store.ts';
import { keyText } from './key-text.ts';
import { valueLine } from './value-text.ts';

const PAGE_ROWS = 25;
const LINE_LENGTH = 160;
/** How long changes must pause before the entries are counted again. */
const PAUSE_MS = 1000;

type Row = readonly [key: Key, value: unknown];

interface ListingEvents {
  onChoose(key: Key): void;
  onError(error: unknown): void;
}

export class Listing {
  readonly #events: ListingEvents;
  readonly list = element('ol', { id: 'keys-list', class: 'entries', attributes: { 'aria-label': 'Entries' } });
  readonly #status = element('span', { id: 'keys-status', attributes: { role: 'status' } });
  readonly #count = element('span', { id: 'keys-count' });
  readonly #previous = button('keys-previous', 'Previous');
  readonly #next = button('keys-next', 'Next');
  readonly pager = element(
    'div',
    { class: 'pager' },
    this.#previous,
    this.#next,
    element('p', { class: 'note' }, this.#status, ' ', this.#count),
  );
  #store: AnyStore | undefined;
  #range: KeyRange = {};
  #reverse = false;
  #rows: readonly Row[] = [];
  #running = new AbortController();
  #counting = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(events: ListingEvents) {
    this.#events = events;
    this.#previous.addEventListener('click', () => this.#turn(false));
    this.#next.addEventListener('click', () => this.#turn(true));
    this.list.addEventListener('click', (event) => {
      const found = event.target instanceof Element ? event.target.closest('button') : null;
      const row = found === null ? undefined : this.#rows[Number(found.dataset['row'])];
      if (row !== undefined) this.#events.onChoose(row[0]);
    });
    this.list.addEventListener('keydown', (event) => this.#move(event));
  }

  /** Shows the first page of a range. */
  async show(store: AnyStore, range: KeyRange, reverse: boolean): Promise<void> {
    this.#store = store;
    this.#range = range;
    this.#reverse = reverse;
    setText(this.#count, '');
    await this.#read(range, reverse, false);
    this.#previous.disabled = true;
    await this.#tellCount(store, range);
  }

  /** Reads the shown page again, and counts again. */
  async renew(): Promise<void> {
    if (this.#store === undefined) return;
    if (this.#rows.length === 0) return this.show(this.#store, this.#range, this.#reverse);
    await this.#renewPage();
    await this.#tellCount(this.#store, this.#range);
  }

  /** Reads the shown page again because of changes, and counts again when they pause. */
  async follow(): Promise<void> {
    const [store, range] = [this.#store, this.#range];
    if (store === undefined) return;
    await this.#renewPage();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => range === this.#range && this.#tellCount(store, range), PAUSE_MS);
  }

  async #renewPage(): Promise<void> {
    const first = this.#rows[0]?.[0];
    const { disabled } = this.#previous;
    const isFirstPage = disabled || first === undefined;
    const from = this.#reverse
      ? { ...cut(this.#range, 'upper'), lte: first }
      : { ...cut(this.#range, 'lower'), gte: first };
    await this.#read(isFirstPage ? this.#range : from, this.#reverse, false);
    this.#previous.disabled = isFirstPage;
  }

  /** The arrow keys go from entry to entry. */
  #move(event: KeyboardEvent): void {
    const way = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (way === 0 || !(event.target instanceof HTMLElement)) return;
    event.preventDefault();
    const next = this.list.children[Number(event.target.dataset['row']) + way]?.firstElementChild;
    if (next instanceof HTMLElement) next.focus();
  }

  /** Goes to the next page, or to the one before. */
  async #turn(isOn: boolean): Promise<void> {
    const edge = (isOn ? this.#rows.at(-1) : this.#rows[0])?.[0];
    if (edge === undefined) return;
    // Upwards in key order when the list continues in that order, or goes back in the reverse order.
    const isUp = isOn !== this.#reverse;
    const range = isUp ? { ...cut(this.#range, 'lower'), gt: edge } : { ...cut(this.#range, 'upper'), lt: edge };
    await this.#read(range, !isUp, !isOn);
    if (isOn) this.#previous.disabled = false;
  }

  /** Reads a page; `isBack` where it is read from its end. */
  async #read(range: KeyRange, reverse: boolean, isBack: boolean): Promise<void> {
    const store = this.#store;
    if (store === undefined) return;
    this.#running.abort();
    const running = new AbortController();
    this.#running = running;
    const start = performance.now();
    try {
      // One entry more than is shown: it reveals whether there are more.
      const asked = { ...range, reverse, limit: PAGE_ROWS + 1, signal: running.signal };
      const rows: Row[] = await store.entries(asked).toArray();
      const hasMore = rows.length > PAGE_ROWS;
      rows.length = Math.min(rows.length, PAGE_ROWS);
      if (isBack) rows.reverse();
      this.#rows = rows;
      this.#draw();
      if (isBack) this.#previous.disabled = !hasMore;
      this.#next.disabled = !isBack && !hasMore;
      const took = formatDuration(performance.now() - start);
      setText(
        this.#status,
        rows.length === 0 ? 'No such keys.' : `${plural(rows.length, 'entry', 'entries')}, read in ${took}`,
      );
    } catch (error) {
      if (!running.signal.aborted) this.#events.onError(error);
    }
  }

  /** Shows how many entries there are, counted by the engine, after the first page. */
  async #tellCount(store: AnyStore, range: KeyRange): Promise<void> {
    this.#counting.abort();
    this.#counting = new AbortController();
    const { signal } = this.#counting;
    try {
      const start = performance.now();
      const count = await store.count({ ...range, signal });
      const took = formatDuration(performance.now() - start);
      setText(this.#count, `${formatCount(count)} in all, counted in ${took}`);
    } catch (error) {
      if (!signal.aborted) this.#events.onError(error);
    }
  }

  /** A line that stays is the same element, so that the focus stays in it. */
  #draw(): void {
    while (this.list.childElementCount > this.#rows.length) this.list.lastElementChild?.remove();
    while (this.list.childElementCount < this.#rows.length) this.list.append(emptyLine(this.list.childElementCount));
    this.#rows.forEach(([key, value], i) => {
      const [keyPart, valuePart] = this.list.children[i]?.firstElementChild?.children ?? [];
      if (keyPart !== undefined) setText(keyPart, keyText(key));
      if (valuePart !== undefined) setText(valuePart, valueLine(value, LINE_LENGTH));
    });
  }
}

function emptyLine(row: number): HTMLElement {
  const line = element(
    'button',
    { class: 'entry', attributes: { type: 'button', 'data-row': String(row) } },
    element('code', { class: 'entry-key' }),
    element('span', { class: 'entry-value' }),
  );
  return element('li', {}, line);
}

/** A range without its bounds on one side: another one takes their place. A prefix stays. */
function cut({ gt, gte, lt, lte, prefix }: KeyRange, side: 'lower' | 'upper'): KeyRange {
  const whole = side === 'lower' ? { lt, lte, prefix } : { gt, gte, prefix };
  return Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined));
}
